#include "api/route.h"

#include <vector>

#include "api/http.h"

namespace berth::api {
namespace {

// Nothing when a segment is empty, malformed or hides a slash.
std::optional<std::vector<std::string>> segments_of(std::string_view path) {
    std::vector<std::string> out;
    out.reserve(8);  // more than a path has
    if (!path.empty() && path.front() == '/') path.remove_prefix(1);
    if (!path.empty() && path.back() == '/') path.remove_suffix(1);
    while (true) {
        const auto slash = path.find('/');
        std::string segment;
        if (!percent_decode(path.substr(0, slash), false, segment)) return std::nullopt;
        if (segment.empty() || segment.find('/') != std::string::npos || segment.find('\0') != std::string::npos) {
            return std::nullopt;
        }
        out.push_back(std::move(segment));
        if (slash == std::string_view::npos) return out;
        path.remove_prefix(slash + 1);
    }
}

bool is_namespace_part(const std::string& segment) {
    return segment == "status" || segment == "finalize";
}

}  // namespace

std::optional<Route> parse_route(std::string_view path) {
    auto segments = segments_of(path);
    if (!segments) return std::nullopt;
    auto& words = *segments;
    Route out;
    size_t at = 0;
    if (words[0] == "api" && words.size() >= 2) {
        out.version = words[1];
        at = 2;
    } else if (words[0] == "apis" && words.size() >= 3) {
        out.group = words[1];
        out.version = words[2];
        at = 3;
    } else {
        return std::nullopt;
    }
    if (at == words.size()) return out;
    if (words[at] == "namespaces" && words.size() >= at + 3 &&
        !(words.size() == at + 3 && is_namespace_part(words[at + 2]))) {
        out.ns = words[at + 1];
        at += 2;
    }
    out.plural = words[at++];
    if (at < words.size()) out.name = words[at++];
    if (at < words.size()) out.subresource = words[at++];
    if (at < words.size()) return std::nullopt;
    return out;
}

}  // namespace berth::api
