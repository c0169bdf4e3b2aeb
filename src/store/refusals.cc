#include "store/refusals.h"

#include <fmt/format.h>

namespace berth::store {
namespace {

// `deployments.apps "web"`: the resource as Kubernetes names it in messages.
std::string described(const Key& key) {
    const auto slash = key.kind.find('/');
    if (slash == std::string::npos) return fmt::format("{} \"{}\"", key.kind, key.name);
    return fmt::format("{}.{} \"{}\"", key.kind.substr(slash + 1), key.kind.substr(0, slash), key.name);
}

}  // namespace

Error already_exists(const Key& key) {
    return {Reason::AlreadyExists, described(key) + " already exists"};
}

Error missing(const Key& key) {
    return base::not_found(described(key) + " not found");
}

Error changed(const Key& key) {
    return base::conflict(fmt::format(
        "Operation cannot be fulfilled on {}: the object has been modified; please apply your changes to the "
        "latest version and try again",
        described(key)));
}

Error other_uid(const Key& key, const std::string& wanted, const std::string& found) {
    return base::conflict(
        fmt::format("Operation cannot be fulfilled on {}: Precondition failed: UID in precondition: {}, UID in object "
                    "meta: {}",
                    described(key), wanted, found));
}

Error too_old(Revision asked, Revision oldest) {
    return {Reason::Expired, fmt::format("too old resource version: {} ({})", asked, oldest)};
}

Error too_new(Revision asked, Revision current) {
    return {Reason::Timeout,
            fmt::format("Too large resource version: {}, current: {}", asked, current),
            {{"ResourceVersionTooLarge", "Too large resource version", ""}},
            1};
}

Error overloaded() {
    return {Reason::TooManyRequests, "the store has too many writes waiting for the disk; try again", {}, 1};
}

Error log_failed(const Error& cause) {
    return base::internal(fmt::format(
        "the store takes no more writes since its log failed ({}); whether the last ones were kept is known after a "
        "restart",
        cause.message));
}

Error closed() {
    return {Reason::ServiceUnavailable, "the store was closed before this write was durable"};
}

}  // namespace berth::store
