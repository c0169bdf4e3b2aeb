#include "api/browser.h"

#include <fmt/format.h>
#include <strings.h>

#include "api/authz.h"
#include "api/status.h"

namespace berth::api {
namespace {

bool same_name(std::string_view one, std::string_view other) {
    return one.size() == other.size() && ::strncasecmp(one.data(), other.data(), one.size()) == 0;
}

bool ours(std::string_view host, const std::vector<std::string>& our_names) {
    if (is_address(host)) return true;
    return std::any_of(our_names.begin(), our_names.end(), [&](const auto& name) { return same_name(name, host); });
}

// "https://HOST" of a page that we served ourselves.
bool own_page(std::string_view origin, std::string_view host) {
    for (const std::string_view scheme : {"https://", "http://"}) {
        if (origin.starts_with(scheme)) return same_name(origin.substr(scheme.size()), host);
    }
    return false;
}

}  // namespace

Status check_browser(const Request& request, const std::vector<std::string>& our_names) {
    if (is_health_path(request.path)) return {};
    const auto host = request.header("host");
    if (!ours(host_of(host), our_names)) {
        return forbidden(fmt::format("\"{}\" is not a name of this server; it is reached by its address, or as {}",
                                     host_of(host), fmt::join(our_names, ", ")));
    }
    const auto origin = request.header("origin");
    if (origin.empty() || own_page(origin, host)) return {};
    return forbidden(fmt::format("requests of pages from elsewhere are refused: this one is from \"{}\"", origin));
}

}  // namespace berth::api
