#include "api/documents.h"

#include "api/negotiate.h"
#include "api/route.h"
#include "api/status.h"
#include "model/kinds/discovery.h"

namespace berth::api {
namespace {

// The Kubernetes release whose API we speak; kubectl compares it with its own.
Json version_json() {
    return JsonObject{{"major", "1"},    {"minor", "32"},      {"gitVersion", "v1.32.0+berth"},
                      {"gitCommit", ""}, {"gitTreeState", ""}, {"buildDate", ""},
                      {"goVersion", ""}, {"compiler", "g++"},  {"platform", "linux/amd64"}};
}

Response document(const Json& json) {
    return json_response(200, base::to_text(json) + "\n");
}

std::optional<Response> found(const std::optional<Json>& json) {
    if (!json) return std::nullopt;
    return document(*json);
}

std::optional<Response> aggregated(const model::Kinds& kinds, model::Groups groups, const Request& request) {
    const auto form = aggregated_version(request.header("accept"));
    if (!form) return std::nullopt;
    Response out = document(model::aggregated_discovery(kinds, groups, *form));
    out.content_type = "application/json;g=apidiscovery.k8s.io;v=" + *form + ";as=APIGroupDiscoveryList";
    return out;
}

std::optional<Response> discovery(const model::Kinds& kinds, const Request& request, std::string_view path) {
    if (path == "/api") {
        if (auto out = aggregated(kinds, model::Groups::Core, request)) return out;
        return document(model::core_versions(request.header("host")));
    }
    if (path == "/apis") {
        if (auto out = aggregated(kinds, model::Groups::Named, request)) return out;
        return document(model::group_list(kinds));
    }
    if (auto route = parse_route(path); route && route->plural.empty()) {
        return found(model::resource_list(kinds, route->group, route->version));
    }
    constexpr std::string_view kGroups = "/apis/";
    if (path.starts_with(kGroups)) return found(model::group_document(kinds, path.substr(kGroups.size())));
    return std::nullopt;
}

std::optional<Response> index(const model::Kinds& kinds) {
    JsonArray paths{"/api", "/api/v1", "/apis"};
    std::string last;
    for (const auto& kind : kinds.all()) {
        if (kind->group.empty()) continue;
        std::string path = "/apis/" + kind->api_version();
        if (path != last) paths.emplace_back(path);
        last = std::move(path);
    }
    for (const auto* path : {"/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}) {
        paths.emplace_back(path);
    }
    return document(JsonObject{{"paths", std::move(paths)}});
}

}  // namespace

std::optional<Response> serve_document(const model::Kinds& kinds, const Request& request) {
    std::string_view path = request.path;
    if (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    if (path == "/") return index(kinds);
    if (path == "/version") return document(version_json());
    return discovery(kinds, request, path);
}

}  // namespace berth::api
