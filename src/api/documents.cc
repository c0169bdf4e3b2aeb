#include "api/documents.h"

#include "api/negotiate.h"
#include "api/route.h"
#include "api/status.h"
#include "model/kinds/discovery.h"
#include "model/kinds/openapi.h"
#include "model/version.h"

namespace berth::api {
namespace {

Json version_json() {
    return JsonObject{{"major", "1"},
                      {"minor", model::kServedMinor},
                      {"gitVersion", model::kServedVersion},
                      {"gitCommit", ""},
                      {"gitTreeState", ""},
                      {"buildDate", ""},
                      {"goVersion", ""},
                      {"compiler", "g++"},
                      {"platform", "linux/amd64"}};
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

bool wants_protobuf(const Request& request) {
    return request.header("accept").find("proto-openapi") != std::string_view::npos;
}

}  // namespace

template <class Make>
Documents::TextPtr Documents::text(const std::string& name, Make&& make) {
    const std::lock_guard lock(mutex_);
    if (const auto found = texts_.find(name); found != texts_.end()) return found->second;
    std::optional<std::string> body = make();
    if (!body) return nullptr;
    auto hash = model::content_hash(*body);
    return texts_[name] = std::make_shared<const Text>(Text{std::move(*body), std::move(hash)});
}

std::optional<Response> Documents::openapi(const model::Kinds& kinds, const Request& request, std::string_view path) {
    constexpr std::string_view kV3 = "/openapi/v3";
    TextPtr found;
    Response out;
    if (path == "/openapi/v2" || path == "/swagger-2.0.0.pb-v1") {
        const bool protobuf = wants_protobuf(request) || path != "/openapi/v2";
        if (protobuf) out.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
        found = text(protobuf ? "v2.pb" : "v2", [&]() -> std::optional<std::string> {
            const Json json = model::openapi_v2(kinds);
            return protobuf ? model::openapi_v2_protobuf(json) : base::to_text(json);
        });
    } else if (path == kV3) {
        found =
            text("v3", [&]() -> std::optional<std::string> { return base::to_text(model::openapi_v3_index(kinds)); });
    } else if (path.starts_with(kV3)) {
        const auto route = parse_route(path.substr(kV3.size()));
        if (!route || !route->plural.empty()) return std::nullopt;
        found = text(std::string(path), [&]() -> std::optional<std::string> {
            const auto json = model::openapi_v3(kinds, route->group, route->version);
            return json ? std::optional(base::to_text(*json)) : std::nullopt;
        });
    }
    if (found == nullptr) return std::nullopt;
    const std::string tag = '"' + found->hash + '"';
    out.headers.emplace_back("ETag", tag);
    if (request.param("hash") != nullptr) out.headers.emplace_back("Cache-Control", "public, immutable");
    if (request.header("if-none-match") == tag)
        out.status = 304;
    else
        out.shared_body = {found, &found->body};
    return out;
}

std::optional<Response> Documents::serve(const std::shared_ptr<const model::Kinds>& kinds, const Request& request) {
    std::string_view path = request.path;
    if (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    if (path == "/") return index(*kinds);
    if (path == "/version") return document(version_json());
    if (!path.starts_with("/openapi") && path != "/swagger-2.0.0.pb-v1") return discovery(*kinds, request, path);
    {
        const std::lock_guard lock(mutex_);
        if (kinds_ != kinds) texts_.clear();
        kinds_ = kinds;
    }
    return openapi(*kinds, request, path);
}

}  // namespace berth::api
