#include "model/kinds/discovery.h"

#include <algorithm>

namespace berth::model {
namespace {

struct GroupVersions {
    std::string group;
    std::vector<std::string> versions;  // the preferred one first
};

std::vector<GroupVersions> groups_of(const Kinds& kinds) {
    std::vector<GroupVersions> groups;
    for (const auto& k : kinds.all()) {
        auto at = std::find_if(groups.begin(), groups.end(), [&](auto& g) { return g.group == k->group; });
        if (at == groups.end()) at = groups.insert(groups.end(), {k->group, {}});
        if (std::find(at->versions.begin(), at->versions.end(), k->version) == at->versions.end())
            at->versions.push_back(k->version);
    }
    return groups;
}

JsonArray texts(const std::vector<std::string>& items) {
    JsonArray list;
    for (const auto& item : items) list.emplace_back(item);
    return list;
}

Json version_entry(const std::string& group, const std::string& version) {
    return {{"groupVersion", group.empty() ? version : group + "/" + version}, {"version", version}};
}

JsonObject group_entry(const GroupVersions& g) {
    JsonArray versions;
    for (const auto& v : g.versions) versions.push_back(version_entry(g.group, v));
    return {
        {"name", g.group}, {"versions", versions}, {"preferredVersion", version_entry(g.group, g.versions.front())}};
}

JsonObject resource_entry(const Kind& k) {
    JsonObject entry{{"name", k.plural},
                     {"singularName", k.singular},
                     {"namespaced", k.namespaced},
                     {"kind", k.kind},
                     {"verbs", texts(k.verbs)}};
    if (!k.short_names.empty()) entry["shortNames"] = texts(k.short_names);
    if (!k.categories.empty()) entry["categories"] = texts(k.categories);
    return entry;
}

JsonObject subresource_entry(const Kind& k, const Subresource& s) {
    JsonObject entry{{"name", k.plural + "/" + s.name},
                     {"singularName", ""},
                     {"namespaced", k.namespaced},
                     {"kind", s.kind},
                     {"verbs", texts(s.verbs)}};
    if (s.group != k.group || s.version != k.version) {
        entry["group"] = s.group;
        entry["version"] = s.version;
    }
    return entry;
}

Json gvk(const std::string& group, const std::string& version, const std::string& kind) {
    return {{"group", group}, {"version", version}, {"kind", kind}};
}

JsonObject aggregated_entry(const Kind& k) {
    JsonObject entry{{"resource", k.plural},
                     {"responseKind", gvk(k.group, k.version, k.kind)},
                     {"scope", k.namespaced ? "Namespaced" : "Cluster"},
                     {"singularResource", k.singular},
                     {"verbs", texts(k.verbs)}};
    if (!k.short_names.empty()) entry["shortNames"] = texts(k.short_names);
    if (!k.categories.empty()) entry["categories"] = texts(k.categories);
    if (k.subresources.empty()) return entry;
    JsonArray subresources;
    for (const auto& s : k.subresources) {
        subresources.push_back(
            {{"subresource", s.name}, {"responseKind", gvk(s.group, s.version, s.kind)}, {"verbs", texts(s.verbs)}});
    }
    entry["subresources"] = std::move(subresources);
    return entry;
}

JsonObject aggregated_group(const Kinds& kinds, const GroupVersions& g) {
    JsonArray versions;
    for (const auto& version : g.versions) {
        JsonArray resources;
        for (const auto& k : kinds.all()) {
            if (k->group == g.group && k->version == version) resources.push_back(aggregated_entry(*k));
        }
        versions.push_back({{"version", version}, {"resources", resources}, {"freshness", "Current"}});
    }
    JsonObject metadata{{"creationTimestamp", nullptr}};
    if (!g.group.empty()) metadata["name"] = g.group;
    return {{"metadata", metadata}, {"versions", versions}};
}

}  // namespace

Json core_versions(std::string_view address) {
    return {{"kind", "APIVersions"},
            {"versions", JsonArray{"v1"}},
            {"serverAddressByClientCIDRs", JsonArray{Json{{"clientCIDR", "0.0.0.0/0"}, {"serverAddress", address}}}}};
}

Json group_list(const Kinds& kinds) {
    JsonArray groups;
    for (const auto& g : groups_of(kinds)) {
        if (!g.group.empty()) groups.push_back(group_entry(g));
    }
    return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", groups}};
}

std::optional<Json> group_document(const Kinds& kinds, std::string_view group) {
    for (const auto& g : groups_of(kinds)) {
        if (g.group != group || group.empty()) continue;
        JsonObject document = group_entry(g);
        document["kind"] = "APIGroup";
        document["apiVersion"] = "v1";
        return document;
    }
    return std::nullopt;
}

std::optional<Json> resource_list(const Kinds& kinds, std::string_view group, std::string_view version) {
    JsonArray resources;
    for (const auto& k : kinds.all()) {
        if (k->group != group || k->version != version) continue;
        resources.push_back(resource_entry(*k));
        for (const auto& s : k->subresources) resources.push_back(subresource_entry(*k, s));
    }
    if (resources.empty()) return std::nullopt;
    const std::string api = group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
    return Json{{"kind", "APIResourceList"}, {"apiVersion", "v1"}, {"groupVersion", api}, {"resources", resources}};
}

Json aggregated_discovery(const Kinds& kinds, Groups groups, std::string_view form) {
    JsonArray items;
    for (const auto& g : groups_of(kinds)) {
        if (g.group.empty() == (groups == Groups::Core)) items.push_back(aggregated_group(kinds, g));
    }
    return {{"kind", "APIGroupDiscoveryList"},
            {"apiVersion", "apidiscovery.k8s.io/" + std::string(form)},
            {"metadata", JsonObject()},
            {"items", items}};
}

}  // namespace berth::model
