#include <gtest/gtest.h>

#include "api/base64.h"
#include "api/in_flight.h"
#include "api/negotiate.h"
#include "api/route.h"
#include "api/versions.h"
#include "api/wire.h"

namespace berth::api {
namespace {

TEST(Route, ReadsThePathsOfResources) {
    const auto pod = parse_route("/api/v1/namespaces/default/pods/web/log");
    ASSERT_TRUE(pod);
    EXPECT_EQ(pod->plural, "pods");
    EXPECT_EQ(pod->ns, "default");
    EXPECT_EQ(pod->name, "web");
    EXPECT_EQ(pod->subresource, "log");
    EXPECT_EQ(parse_route("/api/v1/namespaces/x")->name, "x");
    EXPECT_EQ(parse_route("/api/v1/namespaces/x/finalize")->subresource, "finalize");
    EXPECT_EQ(parse_route("/apis/apps/v1/namespaces/x/deployments")->group, "apps");
    EXPECT_EQ(parse_route("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode")->name, "system:node");
}

TEST(Route, RefusesWhatHidesASegment) {
    for (const auto* path : {"/api/v1/namespaces/a%2Fb/pods", "/api/v1//pods", "/api/v1/pods/%zz", "/api/v1/pods/a%00",
                             "/metrics", "/apis/apps", "/api/v1/namespaces/a/pods/b/c/d"}) {
        EXPECT_FALSE(parse_route(path)) << path;
    }
}

TEST(Negotiate, TakesTheFirstFormWeWrite) {
    EXPECT_EQ(negotiate("")->shape, Form::Shape::Object);
    EXPECT_EQ(negotiate("application/json;as=Table;v=v1;g=meta.k8s.io,application/json")->shape, Form::Shape::Table);
    EXPECT_EQ(negotiate("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/"
                        "json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
                  ->shape,
              Form::Shape::Metadata);
    EXPECT_EQ(negotiate("application/vnd.kubernetes.protobuf,application/json")->shape, Form::Shape::Object);
    EXPECT_FALSE(negotiate("application/vnd.kubernetes.protobuf").ok());
    EXPECT_EQ(
        aggregated_version("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"),
        "v2");
    EXPECT_FALSE(aggregated_version("application/json, */*"));
}

TEST(Versions, TokensSayWhereAListGoesOn) {
    const auto back = parse_continue_token(continue_token({7, {"", "default", "web"}}));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->revision, 7U);
    EXPECT_EQ(back->after.ns, "default");
    EXPECT_EQ(back->after.name, "web");
    for (const auto* token : {"x", "AAAA", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"})
        EXPECT_FALSE(parse_continue_token(token).ok());
    EXPECT_FALSE(parse_version("-1").ok());
    EXPECT_FALSE(parse_version("18446744073709551616").ok());
}

TEST(Wire, SplicesTheVersionIn) {
    store::Record record;
    record.bytes = stored_bytes(
        base::parse_json(
            R"({"spec":{"a":"}\"metadata\":{"},"metadata":{"resourceVersion":"3","name":"x{"},"kind":"K","apiVersion":"v1"})")
            .value());
    record.revision = 9;
    std::string out;
    append_object(record, out);
    EXPECT_EQ(
        out,
        R"({"apiVersion":"v1","kind":"K","metadata":{"resourceVersion":"9","name":"x{"},"spec":{"a":"}\"metadata\":{"}})");
    out.clear();
    append_partial(record, "v1", out);
    EXPECT_EQ(
        out,
        R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9","name":"x{"}})");
}

TEST(Wire, TheMiddleMayStayUnread) {
    const auto stored = [](const std::string& rest) {
        store::Record record;
        record.bytes = std::make_shared<const std::string>(
            R"({"apiVersion":"v1","kind":"K","metadata":{"name":"}\"{","labels":{"status":"a"}})" + rest + "}");
        return record;
    };
    const std::string status = R"(,"status":{"phase":"Pending","list":[{"status":"}"}]})";
    const std::vector<std::string> middles{
        R"(,"spec":{"a":"},\"status\":{\\","b":[[1,{"c":"]"}],"["],"d":null,"status":{"e":{}}})", R"(,"spec":{})",
        R"(,"data":[1,2],"spec":7)", ""};
    for (const auto& middle : middles) {
        const store::Record record = stored(middle + status);
        const auto read = stored_ends(record).value();
        EXPECT_EQ(read.unread, middle);
        EXPECT_EQ(read.object.as_object().size(), 4U);
        EXPECT_EQ(*stored_bytes(read.object, read.unread), *record.bytes);
        // One whose own status is missing, or does not stand last, is all middle.
        for (const auto& rest : {middle, status + middle}) {
            if (rest == status) continue;
            const store::Record other = stored(rest);
            const auto ends = stored_ends(other).value();
            EXPECT_EQ(ends.unread, rest);
            EXPECT_EQ(ends.object.as_object().size(), 3U);
        }
    }
}

TEST(InFlight, AFloodLeavesRoomForOthers) {
    InFlight room(8);
    std::vector<InFlight::Place> flood;
    while (auto place = room.enter("flood")) flood.push_back(std::move(*place));
    EXPECT_EQ(flood.size(), 4u);
    auto first = room.enter("calm");
    auto second = room.enter("calm");
    EXPECT_TRUE(first && second);
    EXPECT_FALSE(room.enter("calm"));
    EXPECT_FALSE(room.enter("flood"));
    flood.clear();
    EXPECT_EQ(room.taken(), 2u);
    EXPECT_TRUE(room.enter("calm"));
}

TEST(Base64, SurvivesTheWayThereAndBack) {
    for (const std::string text : {"a", "ab", "abc", "\xff\xfe\xfd?>"})
        EXPECT_EQ(base64url_decode(base64url_encode(text)), text);
    EXPECT_FALSE(base64url_decode("a"));
    EXPECT_FALSE(base64url_decode("****"));
}

}  // namespace
}  // namespace berth::api
