#include "model/kinds/openapi.h"

#include <gtest/gtest.h>

#include <set>

#include "model/kinds/path.h"
#include "model/kinds/wire.h"

namespace berth::model {
namespace {

// Every $ref below a value.
void references(const Json& value, std::set<std::string>& found) {
    if (const auto* object = value.if_object()) {
        for (const auto& member : *object) {
            if (member.key() == "$ref" && member.value().is_string())
                found.insert(std::string(member.value().get_string()));
            references(member.value(), found);
        }
    } else if (const auto* list = value.if_array()) {
        for (const auto& item : *list) references(item, found);
    }
}

void expect_whole(const Json& document, std::string_view schemas_at, const std::string& prefix) {
    const auto& schemas = members_at(document, schemas_at);
    std::set<std::string> found;
    references(document, found);
    for (const auto& ref : found) {
        ASSERT_TRUE(ref.starts_with(prefix)) << ref;
        EXPECT_TRUE(schemas.contains(ref.substr(prefix.size()))) << ref;
    }
}

TEST(OpenApi, EveryReferenceResolves) {
    for (const auto& kind : kinds().all()) {
        const auto document = openapi_v3(kinds(), kind->group, kind->version);
        ASSERT_TRUE(document.has_value());
        expect_whole(*document, ".components.schemas", "#/components/schemas/");
    }
    expect_whole(openapi_v2(kinds()), ".definitions", "#/definitions/");
    EXPECT_FALSE(openapi_v3(kinds(), "nothing", "v1").has_value());
}

TEST(OpenApi, PatchSaysThatTheServerValidates) {
    const Json document = *openapi_v3(kinds(), "", "v1");
    const auto& paths = members_at(document, ".paths");
    const Json& patch = paths.at("/api/v1/namespaces/{namespace}/pods/{name}").at("patch");
    EXPECT_EQ(patch.at("x-kubernetes-group-version-kind"), (Json{{"group", ""}, {"version", "v1"}, {"kind", "Pod"}}));
    std::set<std::string> names;
    for (const auto& p : list_at(patch, ".parameters")) names.emplace(string_at(p, ".name"));
    EXPECT_TRUE(names.contains("fieldValidation"));
    EXPECT_TRUE(names.contains("dryRun"));
    EXPECT_EQ(string_at(patch, ".operationId"), "patchCoreV1NamespacedPod");
    EXPECT_TRUE(paths.contains("/api/v1/namespaces/{namespace}/pods/{name}/binding"));
    EXPECT_TRUE(paths.contains("/api/v1/pods"));
}

TEST(OpenApi, SchemasCarryMergeKeys) {
    const Json document = *openapi_v3(kinds(), "", "v1");
    const auto& schemas = members_at(document, ".components.schemas");
    const Json& ports = schemas.at("io.k8s.api.core.v1.Container").at("properties").at("ports");
    EXPECT_EQ(string_at(ports, ".x-kubernetes-patch-merge-key"), "containerPort");
    EXPECT_EQ(string_at(ports, ".x-kubernetes-list-type"), "map");
    EXPECT_EQ(string_at(schemas.at("io.k8s.api.core.v1.Pod"), ".x-kubernetes-group-version-kind[0].kind"), "Pod");
    EXPECT_TRUE(schemas.contains("io.k8s.api.core.v1.PodList"));
}

TEST(OpenApi, TheIndexNamesEveryGroupVersion) {
    const Json index = openapi_v3_index(kinds());
    const auto& paths = members_at(index, ".paths");
    EXPECT_TRUE(paths.contains("api/v1"));
    EXPECT_TRUE(
        string_at(paths.at("apis/apps/v1"), ".serverRelativeURL").starts_with("/openapi/v3/apis/apps/v1?hash="));
    EXPECT_EQ(openapi_v3_index(kinds()), index);
}

TEST(OpenApi, TheProtobufFormHasTheSamePathsAndDefinitions) {
    const Json document = openapi_v2(kinds());
    const std::string bytes = openapi_v2_protobuf(document);
    size_t paths = 0;
    size_t definitions = 0;
    for (wire::Reader in(bytes); !in.at_end();) {
        const auto item = in.next();
        ASSERT_TRUE(item.has_value());
        if (item->number != 8 && item->number != 9) continue;
        for (wire::Reader inner(item->bytes); !inner.at_end();) {
            ASSERT_TRUE(inner.next().has_value());
            ++(item->number == 8 ? paths : definitions);
        }
    }
    EXPECT_EQ(paths, members_at(document, ".paths").size());
    EXPECT_EQ(definitions, members_at(document, ".definitions").size());
}

}  // namespace
}  // namespace berth::model
