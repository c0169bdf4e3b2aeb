#include "model/kinds/fields.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "model/kinds/kinds.h"
#include "model/kinds/test_objects.h"

namespace berth::model {
namespace {

const Type& type_of(std::string_view name) {
    return *types()->find(name);
}

TEST(Fields, UnknownOnesAreNamedAndPruned) {
    Json pod = parsed(R"({"foo":1,"spec":{"containers":[{"name":"a","bar":{}}],"Containers":[]}})");
    const auto complaints = check_fields(pod, type_of("core.v1.Pod"));
    ASSERT_TRUE(complaints.ok());
    EXPECT_EQ(complaints->size(), 3U);
    EXPECT_EQ(complaints->at(0), "unknown field \"foo\"");
    EXPECT_NE(std::find(complaints->begin(), complaints->end(), "unknown field \"spec.containers[0].bar\""),
              complaints->end());
    EXPECT_EQ(pod, parsed(R"({"metadata":{},"spec":{"containers":[{"name":"a","resources":{}}]},"status":{}})"));
    EXPECT_EQ(strict_error({"unknown field \"a\"", "unknown field \"b\""}).message,
              "strict decoding error: unknown field \"a\", unknown field \"b\"");
}

TEST(Fields, OnlyTheMembersThatChangedAreLookedAt) {
    Json pod = parsed(R"({"spec":{"known":"fine"},"status":{"foo":1,"phase":"Running"}})");
    const Json patch = parsed(R"({"status":{},"gone":null})");
    const auto complaints = check_fields(pod, type_of("core.v1.Pod"), &patch.as_object());
    ASSERT_TRUE(complaints.ok());
    EXPECT_EQ(*complaints, std::vector<std::string>{"unknown field \"status.foo\""});
    EXPECT_EQ(pod, parsed(R"({"metadata":{},"spec":{"known":"fine"},"status":{"phase":"Running"}})"));
}

TEST(Fields, WrongTypesAreRefusedInGosWords) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {R"({"spec":{"containers":"x"}})",
         "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container"},
        {R"({"spec":{"priority":"1"}})",
         "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"},
        {R"({"spec":{"priority":3000000000}})",
         "json: cannot unmarshal number into Go struct field PodSpec.spec.priority of type int32"},
        {R"({"spec":{"priority":1.5}})",
         "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32"},
        {R"({"metadata":{"labels":{"a":1}}})",
         "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels.a of type map[string]string"},
        {R"([])", "json: cannot unmarshal array into Go value of type v1.Pod"},
    };
    for (const auto& [text, message] : cases) {
        Json pod = parsed(text);
        const auto result = check_fields(pod, type_of("core.v1.Pod"));
        ASSERT_FALSE(result.ok()) << text;
        EXPECT_EQ(result.error().message, message);
        EXPECT_EQ(result.error().reason, Reason::BadRequest);
    }
}

TEST(Fields, ValuesBecomeCanonicalAndEmptyOnesGo) {
    Json pod = parsed(R"({"metadata":{"creationTimestamp":null,"labels":{},"generation":0,
        "deletionTimestamp":"2024-01-02T03:04:05.678+01:00"},
        "spec":{"priority":0,"hostNetwork":false,"nodeSelector":null,"containers":[{"name":"a","command":[],
        "resources":{"requests":{"cpu":0.5,"memory":"1024Mi"}}}]}})");
    ASSERT_TRUE(check_fields(pod, type_of("core.v1.Pod")).ok());
    EXPECT_EQ(pod, parsed(R"({"metadata":{"deletionTimestamp":"2024-01-02T02:04:05Z"},"spec":{"priority":0,
        "containers":[{"name":"a","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}}]},"status":{}})"));
}

TEST(Fields, UnreadableValuesAreRefusedByTheirPath) {
    for (const auto& [text, path] :
         {std::pair{R"({"spec":{"containers":[{"resources":{"limits":{"cpu":"lots"}}}]}})",
                    "spec.containers[0].resources.limits.cpu: \"lots\""},
          {R"({"metadata":{"deletionTimestamp":"yesterday"}})", "metadata.deletionTimestamp: \"yesterday\""}}) {
        Json pod = parsed(text);
        const auto read = check_fields(pod, type_of("core.v1.Pod"));
        ASSERT_FALSE(read.ok()) << text;
        EXPECT_TRUE(read.error().message.starts_with(path)) << read.error().message;
    }
    Json secret = parsed(R"({"data":{"a":"not base64!"}})");
    EXPECT_FALSE(check_fields(secret, type_of("core.v1.Secret")).ok());
}

TEST(Fields, AReservationsTemplateIsKeptAsItIs) {
    const std::string_view text = R"({"kind":"Reservation","metadata":{"name":"r"},"spec":{"owners":[{}],
        "template":{"spec":{"novel":1,"containers":[{"name":"a","resources":{"requests":{"cpu":"1000m"}}}]}}},"status":{}})";
    Json reservation = parsed(text);
    const auto complaints = check_fields(reservation, type_of("koordinator.v1alpha1.Reservation"));
    ASSERT_TRUE(complaints.ok());
    EXPECT_TRUE(complaints->empty());
    EXPECT_EQ(reservation, parsed(text));
}

TEST(Fields, SchemasMayBeRecursiveAndHaveOtherForms) {
    Json crd = parsed(R"({"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object",
        "properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"additionalProperties":true}}}}}]}})");
    const auto complaints = check_fields(crd, type_of("apiextensions.v1.CustomResourceDefinition"));
    ASSERT_TRUE(complaints.ok()) << complaints.error().message;
    EXPECT_TRUE(complaints->empty());
}

TEST(Base64, BothWays) {
    for (const std::string_view text : {"", "a", "ab", "abc", "abcd", "\xff\x00\x80"}) {
        EXPECT_EQ(base::from_base64(base::to_base64(text)), text);
    }
    EXPECT_EQ(base::to_base64("hello"), "aGVsbG8=");
    for (const auto* bad : {"a", "a===", "aGVsbG8", "aGVs=G8=", "!!!!"}) EXPECT_FALSE(base::from_base64(bad)) << bad;
}

}  // namespace
}  // namespace berth::model
