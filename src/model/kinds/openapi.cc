#include "model/kinds/openapi.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include "model/kinds/openapi_parts.h"
#include "model/kinds/text.h"
#include "model/version.h"

namespace berth::model {
namespace {

constexpr std::string_view kDescriptions =
#include "descriptions.tbl.inc"
    ;

Json info() {
    return JsonObject{{"title", "Kubernetes"}, {"version", kServedVersion}};
}

// Bodies and answers that are no kinds of their own.
void add_common(Schemas& schemas) {
    for (const auto* name : {"meta.v1.Status", "meta.v1.DeleteOptions"}) schemas.add_type(*types()->find(name));
}

void add_subresource_types(Schemas& schemas, const Kind& kind) {
    for (const auto& s : kind.subresources) {
        const Type* type = kinds().body_type(s.group.empty() ? s.version : s.group + "/" + s.version, s.kind);
        if (type != nullptr) schemas.add_type(*type);
    }
}

using Words = absl::flat_hash_map<std::string, std::string_view>;

// Keys: "core.v1.Pod" and "core.v1.Pod spec".
Words parse_descriptions() {
    Words words;
    std::string type;
    text::lines(kDescriptions, [&](std::string_view line) {
        const bool member = line.front() == ' ';
        const size_t colon = line.find(": ");
        const auto name = text::trim(line.substr(0, colon));
        const auto said = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 2);
        if (!member) type = name;
        words[member ? type + " " + std::string(name) : type] = said;
    });
    return words;
}

}  // namespace

std::string_view description_of(std::string_view type_name, std::string_view member) {
    static const Words words = parse_descriptions();
    std::string key(type_name);
    if (!member.empty()) key += " " + std::string(member);
    const auto found = words.find(key);
    if (found != words.end()) return found->second;
    if (member.empty()) return {};
    const auto anywhere = words.find("* " + std::string(member));
    return anywhere == words.end() ? std::string_view() : anywhere->second;
}

std::optional<Json> openapi_v3(const Kinds& kinds, std::string_view group, std::string_view version) {
    Schemas schemas(Dialect::V3);
    add_common(schemas);
    JsonObject paths;
    for (const auto& k : kinds.all()) {
        if (k->group != group || k->version != version) continue;
        schemas.add_kind(*k);
        add_subresource_types(schemas, *k);
        add_paths(paths, *k, schemas, Dialect::V3);
    }
    if (paths.empty()) return std::nullopt;
    return Json(JsonObject{{"openapi", "3.0.0"},
                           {"info", info()},
                           {"paths", std::move(paths)},
                           {"components", JsonObject{{"schemas", schemas.take()}}}});
}

Json openapi_v3_index(const Kinds& kinds) {
    JsonObject paths;
    for (const auto& k : kinds.all()) {
        const std::string path = (k->group.empty() ? "api/" : "apis/") + k->api_version();
        if (paths.contains(path)) continue;
        const std::string hash = content_hash(base::to_text(*openapi_v3(kinds, k->group, k->version)));
        paths[path] = JsonObject{{"serverRelativeURL", fmt::format("/openapi/v3/{}?hash={}", path, hash)}};
    }
    return JsonObject{{"paths", std::move(paths)}};
}

Json openapi_v2(const Kinds& kinds) {
    Schemas schemas(Dialect::V2);
    add_common(schemas);
    JsonObject paths;
    for (const auto& k : kinds.all()) {
        schemas.add_kind(*k);
        add_subresource_types(schemas, *k);
        add_paths(paths, *k, schemas, Dialect::V2);
    }
    return JsonObject{
        {"swagger", "2.0"}, {"info", info()}, {"paths", std::move(paths)}, {"definitions", schemas.take()}};
}

std::string content_hash(std::string_view text) {
    // FNV-1a: it names versions of our own documents, nothing depends on collisions being hard to make.
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
    return fmt::format("{:016X}", hash);
}

}  // namespace berth::model
