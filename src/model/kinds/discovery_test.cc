#include "model/kinds/discovery.h"

#include <gtest/gtest.h>

#include "model/kinds/path.h"

namespace berth::model {
namespace {

const Json* named(const Json& list, std::string_view path, std::string_view key, std::string_view value) {
    for (const auto& item : list_at(list, path)) {
        if (string_at(item, key) == value) return &item;
    }
    return nullptr;
}

TEST(Discovery, Groups) {
    const Json groups = group_list(kinds());
    const Json* autoscaling = named(groups, ".groups", ".name", "autoscaling");
    ASSERT_NE(autoscaling, nullptr);
    EXPECT_EQ(string_at(*autoscaling, ".preferredVersion.groupVersion"), "autoscaling/v2");
    EXPECT_EQ(list_at(*autoscaling, ".versions").size(), 2U);
    EXPECT_EQ(named(groups, ".groups", ".name", ""), nullptr);
    EXPECT_TRUE(group_document(kinds(), "apps").has_value());
    EXPECT_FALSE(group_document(kinds(), "nothing").has_value());
    EXPECT_EQ(string_at(core_versions("127.0.0.1:6443"), ".versions[0]"), "v1");
}

TEST(Discovery, ResourcesAndSubresources) {
    const auto core = resource_list(kinds(), "", "v1");
    ASSERT_TRUE(core);
    EXPECT_EQ(string_at(*core, ".groupVersion"), "v1");
    const Json* eviction = named(*core, ".resources", ".name", "pods/eviction");
    ASSERT_NE(eviction, nullptr);
    EXPECT_EQ(base::to_text(*eviction), R"({"name":"pods/eviction","singularName":"","namespaced":true,)"
                                        R"("kind":"Eviction","verbs":["create"],"group":"policy","version":"v1"})");
    const Json* pods = named(*core, ".resources", ".name", "pods");
    EXPECT_EQ(string_at(*pods, ".shortNames[0]"), "po");
    EXPECT_FALSE(resource_list(kinds(), "apps", "v1beta1"));
}

TEST(Discovery, Aggregated) {
    const Json core = aggregated_discovery(kinds(), Groups::Core, "v2");
    EXPECT_EQ(string_at(core, ".apiVersion"), "apidiscovery.k8s.io/v2");
    EXPECT_EQ(list_at(core, ".items").size(), 1U);
    const Json rest = aggregated_discovery(kinds(), Groups::Named, "v2beta1");
    const Json* apps = named(rest, ".items", ".metadata.name", "apps");
    ASSERT_NE(apps, nullptr);
    const Json* deployments = named(*apps, ".versions[0].resources", ".resource", "deployments");
    ASSERT_NE(deployments, nullptr);
    const Json* scale = named(*deployments, ".subresources", ".subresource", "scale");
    ASSERT_NE(scale, nullptr);
    EXPECT_EQ(string_at(*scale, ".responseKind.group"), "autoscaling");
}

}  // namespace
}  // namespace berth::model
