#include "model/kinds/defaults.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "model/kinds/fields.h"
#include "model/kinds/test_objects.h"

namespace berth::model {
namespace {

Json defaulted(std::string_view text) {
    Json object = parsed(text);
    EXPECT_TRUE(check_fields(object, *kind_of(object).type).ok());
    apply_defaults(object, kind_of(object));
    return object;
}

// Each line: a random object and what kube-apiserver's scheme makes of it (tests/oracles/kubernetes).
TEST(Defaults, AgreeWithKubernetes) {
    std::ifstream in("src/model/kinds/testdata/kubernetes.jsonl");
    std::set<std::string> seen;
    for (std::string line; std::getline(in, line);) {
        const Json c = parsed(line);
        Json object = c.at("in");
        const Kind* kind = kinds().of(base::find_string(object, {"apiVersion"}), base::find_string(object, {"kind"}));
        if (kind == nullptr) continue;
        const auto complaints = check_fields(object, *kind->type);
        ASSERT_TRUE(complaints.ok()) << complaints.error().message << line;
        apply_defaults(object, *kind);
        EXPECT_EQ(object, drop_nulls(c.at("out"))) << kind->kind << " " << base::to_text(c.at("in"));
        Json again = object;
        apply_defaults(again, *kind);
        EXPECT_EQ(again, object) << "applied twice";
        seen.insert(kind->api_version() + kind->kind);
    }
    EXPECT_GE(seen.size(), 40U);
}

TEST(Defaults, OfAReservation) {
    const std::string_view head = R"({"apiVersion":"scheduling.koordinator.sh/v1alpha1","kind":"Reservation","spec":)";
    Json plain = defaulted(std::string(head) + R"({"template":{"spec":{"containers":[{"name":"a"}]}},"owners":[]}})");
    EXPECT_EQ(plain.at("spec"), parsed(R"({"template":{"spec":{"containers":[{"name":"a"}]}},"owners":[],"ttl":"24h",
        "allocateOnce":true})"));
    Json expiring =
        defaulted(std::string(head) + R"({"owners":[],"expires":"2030-01-01T00:00:00Z","allocateOnce":false}})");
    EXPECT_EQ(expiring.at("spec"), parsed(R"({"owners":[],"expires":"2030-01-01T00:00:00Z","allocateOnce":false})"));
    Json never = defaulted(std::string(head) + R"({"owners":[],"ttl":"0"}})");
    EXPECT_EQ(never.at("spec").at("ttl"), "0");
}

TEST(Defaults, ImagePullPolicyFollowsTheTag) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {"nginx", "Always"},
        {"nginx:latest", "Always"},
        {"nginx:1.2", "IfNotPresent"},
        {"host:5000/nginx", "Always"},
        {"host:5000/nginx:1", "IfNotPresent"},
        {"nginx@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "IfNotPresent"}};
    for (const auto& [image, wanted] : cases) {
        const Json pod = defaulted(R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","image":")" +
                                   std::string(image) + R"("}]}})");
        EXPECT_EQ(pod.at("spec").at("containers").at(0).at("imagePullPolicy"), Json(wanted)) << image;
    }
}

TEST(Defaults, OfADefinition) {
    const Json crd = defaulted(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{
        "group":"g","names":{"kind":"MyThing","plural":"mythings"},"scope":"Namespaced",
        "versions":[{"name":"v1","served":true,"storage":true}]}})");
    EXPECT_EQ(crd.at("spec").at("names"),
              parsed(R"({"kind":"MyThing","plural":"mythings","listKind":"MyThingList","singular":"mything"})"));
    EXPECT_EQ(crd.at("status").at("storedVersions"), parsed(R"(["v1"])"));
    EXPECT_EQ(crd.at("spec").at("conversion"), parsed(R"({"strategy":"None"})"));
}

}  // namespace
}  // namespace berth::model
