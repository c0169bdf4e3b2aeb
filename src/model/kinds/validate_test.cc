#include "model/kinds/validate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "base/test_cost.h"
#include "model/kinds/defaults.h"
#include "model/kinds/fields.h"
#include "model/kinds/kinds_fleet.h"
#include "model/kinds/test_objects.h"

namespace berth::model {
namespace {

using ByField = std::map<std::string, std::set<std::string>>;

// Where our words are our own, only the value is compared: percentages, and values that Kubernetes prints in the
// spelling of its own structs.
std::string comparable(std::string text) {
    for (const auto* ours : {"a valid percent", "must be a number or a percentage"}) {
        if (text.find(ours) != std::string::npos) return text.substr(0, text.find("\": "));
    }
    const size_t object = text.find(": {\"");
    return object == std::string::npos || text.find(": {\"app\"") != std::string::npos ? text : text.substr(0, object);
}

// Kubernetes says metadata where it means a node's spec, and leaves a gate's member out.
std::string comparable_field(const std::string& field) {
    if (field.starts_with("metadata.taints")) return "spec" + field.substr(8);
    return field == "spec.schedulingGates[0]" ? field + ".name" : field;
}

// Each line: a valid object with one thing changed, and what kube-apiserver's validation says (testdata/mutations.txt,
// tests/oracles/kubernetes). Where Kubernetes complains twice about one member, once is enough.
TEST(Validate, AgreesWithKubernetes) {
    std::ifstream in("src/model/kinds/testdata/validation.jsonl");
    int count = 0;
    for (std::string line; std::getline(in, line); ++count) {
        const Json c = parsed(line);
        Json object = c.at("object");
        const Kind& kind = *kinds().of(base::find_string(object, {"apiVersion"}), base::find_string(object, {"kind"}));
        ASSERT_TRUE(check_fields(object, *kind.type).ok());
        ByField theirs;
        for (const auto& cause : c.at("causes").get_array()) {
            theirs[comparable_field(std::string(base::find_string(cause, {"field"})))].insert(
                comparable(std::string(base::find_string(cause, {"reason"})) + " " +
                           std::string(base::find_string(cause, {"message"}))));
        }
        ByField ours;
        for (const auto& cause : validate(object, kind))
            ours[cause.field].insert(comparable(cause.reason + " " + cause.message));
        ASSERT_EQ(ours.size(), theirs.size()) << line << (ours.empty() ? "" : ours.begin()->first);
        for (const auto& [field, messages] : ours) {
            for (const auto& message : messages)
                EXPECT_TRUE(theirs[field].contains(message)) << field << ": " << message << "\n" << line;
        }
    }
    EXPECT_GE(count, 170);
}

TEST(Validate, ATopologyKeyHasOneConstraintOfEachKind) {
    const Json pod = parsed(R"({"spec":{"containers":[{"name":"c","image":"i"}],"topologySpreadConstraints":[
        {"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"},
        {"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"},
        {"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}]}})");
    const auto causes = validate(pod, *kinds().of("v1", "Pod"));
    ASSERT_EQ(causes.size(), 1U);
    EXPECT_EQ(causes[0].field, "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}");
    EXPECT_EQ(causes[0].message, R"(Duplicate value: "{zone, DoNotSchedule}")");
}

// As kube-apiserver says it, where a pod asks for resources as a whole.
TEST(Validate, AWholePodAsksForNoLessThanItsContainers) {
    const auto complaint = [](std::string_view whole) {
        const Json pod = parsed(fmt::format(R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a"}},"spec":{{
            "resources":{{"requests":{}}},"containers":[{{"name":"a","image":"i","resources":{{"requests":{{"cpu":"1"}}}}}}],
            "initContainers":[
              {{"name":"b","image":"i","restartPolicy":"Always","resources":{{"requests":{{"cpu":"500m"}}}}}},
              {{"name":"c","image":"i","resources":{{"requests":{{"cpu":"2"}}}}}}]}}}})",
                                            whole));
        std::string out;
        for (const auto& cause : validate(pod, *kinds().of("v1", "Pod"))) out += cause.field + ": " + cause.message;
        return out;
    };
    EXPECT_EQ(complaint(R"({"cpu":"2500m","memory":"1Gi"})"), "");
    EXPECT_EQ(complaint(R"({"memory":"1Gi"})"), "");
    EXPECT_EQ(complaint(R"({"cpu":"2400m"})"),
              "spec.resources.requests[cpu]: Invalid value: \"2400m\": must be greater than or equal to aggregate "
              "container requests of 2500m");
}

TEST(Validate, WhatMayNotChange) {
    const Json before = parsed(R"({"spec":{"selector":{"matchLabels":{"a":"b"}},"replicas":1}})");
    const Json after = parsed(R"({"spec":{"selector":{"matchLabels":{"a":"c"}},"replicas":2}})");
    const auto causes = validate_update(before, after, *kinds().of("apps/v1", "Deployment"));
    ASSERT_EQ(causes.size(), 1U);
    EXPECT_EQ(causes[0].field, "spec.selector");
    EXPECT_EQ(causes[0].message, R"(Invalid value: {"matchLabels":{"a":"c"}}: field is immutable)");
    EXPECT_TRUE(validate_update(before, before, *kinds().of("apps/v1", "Deployment")).empty());
    const Kind& service = *kinds().of("v1", "Service");
    const Json placed = parsed(R"({"spec":{"clusterIP":"10.0.0.1"}})");
    EXPECT_TRUE(validate_update(parsed(R"({"spec":{}})"), placed, service).empty());
    EXPECT_EQ(validate_update(placed, parsed(R"({"spec":{"clusterIP":"10.0.0.2"}})"), service).size(), 1U);
    const Json sealed = parsed(R"({"immutable":true,"data":{"a":"b"}})");
    const Json opened = parsed(R"({"data":{"a":"c"}})");
    EXPECT_EQ(validate_update(sealed, opened, *kinds().of("v1", "ConfigMap")).size(), 2U);
    const auto stateful =
        validate_update(parsed(R"({"spec":{"serviceName":"a","replicas":1}})"),
                        parsed(R"({"spec":{"serviceName":"b","replicas":2}})"), *kinds().of("apps/v1", "StatefulSet"));
    ASSERT_EQ(stateful.size(), 1U);
    EXPECT_EQ(stateful[0].reason, "FieldValueForbidden");
}

TEST(Validate, StrangeDocumentsAreNoDanger) {
    for (const auto& kind : kinds().all()) {
        EXPECT_NO_FATAL_FAILURE((void)validate(JsonObject(), *kind));
        EXPECT_NO_FATAL_FAILURE((void)validate(parsed(R"({"spec":{"template":{},"selector":{}},"data":{}})"), *kind));
    }
}

TEST(Validate, PoolsOfAMachinesReservationAreLookedAtOnce) {
    const Kind& kind = *kinds_with_fleet().of("compute.ironcore.dev/v1alpha1", "Reservation");
    const auto cost = [&](int n) {
        JsonArray pools;
        for (int i = 0; i < n; ++i) pools.push_back(Json("p" + std::to_string(i)));
        const Json object = JsonObject{{"metadata", JsonObject{{"name", "r"}}},
                                       {"spec", JsonObject{{"pools", pools}, {"resources", JsonObject{{"cpu", "1"}}}}}};
        EXPECT_EQ(validate(object, kind).size(), n > 10'000 ? 1U : 0U);
        return base::least_cost([&] { (void)validate(object, kind); });
    };
    EXPECT_LT(cost(8'000), 24 * cost(1'000));
    cost(10'001);
}

}  // namespace
}  // namespace berth::model
