#include "api/versions.h"

#include <fmt/format.h>

#include <charconv>

#include "api/base64.h"

namespace berth::api {
namespace {

Error bad_token() {
    return base::bad_request("continue key is not valid: the continue token was not made by this server");
}

Error bad_list(std::string field, std::string_view why) {
    return invalid_object("meta.k8s.io", "ListOptions", "", {forbidden_value(std::move(field), why)});
}

// The documented table: a match needs a version and no continue token; Exact needs a real version.
Status check_match(const CallOptions& options) {
    const auto& match = options.version_match;
    if (options.initial_events) {
        return bad_list("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    if (match.empty()) return {};
    if (options.resource_version.empty()) {
        return bad_list("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if (!options.continue_token.empty()) {
        return bad_list("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
    }
    if (match != "Exact" && match != "NotOlderThan") {
        return bad_list(
            "resourceVersionMatch",
            fmt::format("Unsupported value: \"{}\": supported values: \"Exact\", \"NotOlderThan\", \"\"", match));
    }
    if (match == "Exact" && options.resource_version == "0") {
        return bad_list("resourceVersionMatch",
                        "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"");
    }
    return {};
}

}  // namespace

Result<store::Revision> parse_version(std::string_view text) {
    if (text.empty()) return store::Revision{0};
    store::Revision out = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (ec != std::errc{} || end != text.data() + text.size()) {
        return base::bad_request(fmt::format("invalid resource version \"{}\": not a decimal number", text));
    }
    return out;
}

Error version_too_large(store::Revision asked, store::Revision current) {
    return {Reason::Timeout,
            fmt::format("Too large resource version: {}, current: {}", asked, current),
            {{"ResourceVersionTooLarge", "Too large resource version", ""}},
            1};
}

std::string continue_token(const Continuation& continuation) {
    const std::string start = continuation.after.ns + "/" + continuation.after.name;
    return base64url_encode(base::to_text(
        JsonObject{{"v", "meta.k8s.io/v1"}, {"rv", continuation.revision}, {"start", start + std::string(1, '\0')}}));
}

Result<Continuation> parse_continue_token(std::string_view token) {
    const auto text = base64url_decode(token);
    if (!text) return bad_token();
    auto json = base::parse_json(*text);
    if (!json || !json->is_object() || base::find_string(*json, {"v"}) != "meta.k8s.io/v1") return bad_token();
    const Json* revision = base::find(*json, {"rv"});
    const std::string_view start = base::find_string(*json, {"start"});
    const auto slash = start.find('/');
    if (revision == nullptr || !(revision->is_int64() || revision->is_uint64()) || slash == std::string_view::npos ||
        start.back() != '\0') {
        return bad_token();
    }
    Continuation out;
    out.revision = revision->is_uint64() ? revision->as_uint64() : static_cast<uint64_t>(revision->as_int64());
    out.after = {"", std::string(start.substr(0, slash)),
                 std::string(start.substr(slash + 1, start.size() - slash - 2))};
    return out;
}

Result<ListPlan> plan_list(const CallOptions& options, store::Revision current) {
    if (auto fits = check_match(options); !fits) return fits.error();
    ListPlan out;
    out.limit = options.limit;
    if (!options.continue_token.empty()) {
        if (!options.resource_version.empty() && options.resource_version != "0") {
            return base::bad_request("specifying resource version is not allowed when using continue");
        }
        auto from = TRY(parse_continue_token(options.continue_token));
        out.at = from.revision;
        out.after = std::move(from.after);
        out.resumed = true;
        return out;
    }
    const store::Revision asked = TRY(parse_version(options.resource_version));
    if (asked > current) return version_too_large(asked, current);
    if (options.resource_version == "0") out.limit = 0;
    const bool exact =
        options.version_match == "Exact" || (options.version_match.empty() && asked > 0 && out.limit > 0);
    if (exact) out.at = asked;
    return out;
}

}  // namespace berth::api
