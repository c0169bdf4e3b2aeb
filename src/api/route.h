#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::api {

// Where a path under /api or /apis points.
struct Route {
    std::string group;
    std::string version;
    std::string plural;  // "" for a discovery document
    std::string ns;      // "" for cluster objects and lists over all namespaces
    std::string name;
    std::string subresource;
};

// /api/v1/..., /apis/GROUP/VERSION/...; nothing when the path has another shape or a malformed segment.
// "namespaces/NS" is the namespace itself; "namespaces/NS/status" and "/finalize" are its subresources.
std::optional<Route> parse_route(std::string_view path);

}  // namespace berth::api
