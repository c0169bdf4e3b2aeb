#include "run/cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json_view.h"
#include "model/node.h"
#include "model/node_reservation.h"

namespace berth::run {
namespace {

constexpr base::Time kNow{1'794'780'000'000'000'000};

class ClusterTest : public testing::Test {
protected:
    explicit ClusterTest(ClusterOptions options = {}) : cluster_(kNow, std::move(options)) {}

    template <class Read>
    static auto read(const std::string& text, Read reader) {
        base::JsonParser parser;
        auto object = reader(*parser.parse(text));
        EXPECT_TRUE(object.ok()) << object.error().message;
        return *std::move(object);
    }
    void node(const std::string& name, int cpu, const std::string& kept = "") {
        auto made = read(fmt::format(R"({{"metadata":{{"name":"{}"}},)"
                                     R"("status":{{"allocatable":{{"cpu":"{}","memory":"8Gi","pods":"10"}}}}}})",
                                     name, cpu),
                         model::read_node);
        if (!kept.empty()) made.meta.annotations.set(std::string(model::kNodeReservation), kept);
        cluster_.put(std::move(made));
    }
    void pod(const std::string& name, int cpu, const std::string& more = R"("priority":0)",
             const std::string& nominated = "") {
        cluster_.put(read(
            fmt::format(R"({{"metadata":{{"name":"{0}","namespace":"default","labels":{{"app":"{0}"}}}},"spec":{{{2},)"
                        R"("containers":[{{"name":"c","resources":{{"requests":{{"cpu":"{1}"}}}}}}]}},)"
                        R"("status":{{"nominatedNodeName":"{3}"}}}})",
                        name, cpu, more, nominated),
            model::read_pod));
    }
    void reservation(const std::string& name, int cpu, const std::string& owner, const std::string& more = "") {
        cluster_.put(
            read(fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"ttl":"1h",)"
                             R"("owners":[{{"labelSelector":{{"matchLabels":{{"app":"{}"}}}}}}],"template":{{"spec":)"
                             R"({{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"{}"}}}}}}]}}}}}}{}}})",
                             name, owner, cpu, more),
                 model::read_reservation));
    }
    void support(const char* kind, const std::string& text) {
        base::JsonParser parser;
        EXPECT_TRUE(cluster_.put(*ledger::kind_named(kind), *parser.parse(text)).ok());
    }
    std::string node_of(const std::string& name) const {
        const model::Pod* found = cluster_.pod("default", name);
        return found ? found->node : "gone";
    }
    static const sched::BindPod* bind_in(const std::vector<sched::Plan>& plans) {
        for (const auto& plan : plans) {
            if (const auto* bind = std::get_if<sched::BindPod>(&plan)) return bind;
        }
        return nullptr;
    }

    Cluster cluster_;
};

TEST_F(ClusterTest, AReservationIsUsedUpByItsOwner) {
    node("n1", 8);
    reservation("r", 6, "web");
    pod("other", 4);
    pod("web", 6);
    const auto answers = cluster_.settle();
    ASSERT_EQ(answers.size(), 3u);
    EXPECT_EQ(node_of("web"), "n1");
    EXPECT_EQ(node_of("other"), "");
    EXPECT_EQ(answers[2].reservation, "r");
    EXPECT_EQ(cluster_.reservation("r")->phase, model::ReservationPhase::Succeeded);
    EXPECT_EQ(cluster_.reservation("r")->current_owners.size(), 1u);
    EXPECT_TRUE(cluster_.settle().empty()) << "nothing has happened since";
    cluster_.remove("Pod", "default", "web");
    cluster_.settle();
    EXPECT_EQ(node_of("other"), "n1");
}

// By name, also of a node that came when others had been looked at, and not of one that has gone.
TEST_F(ClusterTest, WhatIsSaidOfNodesStandsByTheirNames) {
    node("n2", 4);
    node("n10", 4);
    node("small", 1);
    pod("a", 2);
    const auto first = cluster_.settle();
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(first[0].feasible, (std::vector<std::string>{"n10", "n2"}));
    EXPECT_EQ(first[0].scores.size(), 2u);
    EXPECT_EQ(first[0].rejected.at("small"), std::vector<std::string>{"Insufficient cpu"});
    node("m", 8);
    cluster_.remove("Node", "", "small");
    pod("b", 1);
    const auto second = cluster_.settle();
    ASSERT_EQ(second.size(), 1u);
    EXPECT_EQ(second[0].feasible, (std::vector<std::string>{"m", "n10", "n2"}));
    EXPECT_TRUE(second[0].rejected.empty());
}

TEST_F(ClusterTest, WhatCannotBeWeighedIsTriedAndEnds) {
    node("n1", 8);
    node("n2", 8);
    pod("broken", 1,
        R"("priority":9,"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":)"
        R"([{"weight":1,"preference":{"matchExpressions":[{"key":"k","operator":"Gt","values":["x"]}]}}]}})");
    pod("fine", 1);
    const auto answers = cluster_.settle();
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_FALSE(answers[0].error.empty());
    EXPECT_EQ(answers[1].node, "n1");
}

TEST_F(ClusterTest, TimeIsTheCallers) {
    node("n1", 8);
    reservation("r", 6, "nobody");
    pod("large", 8);
    cluster_.settle();
    EXPECT_EQ(node_of("large"), "");
    cluster_.advance_to(kNow + std::chrono::minutes(59));
    cluster_.settle();
    EXPECT_EQ(cluster_.reservation("r")->phase, model::ReservationPhase::Available);
    cluster_.advance_to(kNow + std::chrono::minutes(61));
    cluster_.settle();
    EXPECT_EQ(cluster_.reservation("r")->phase, model::ReservationPhase::Failed);
    EXPECT_EQ(node_of("large"), "n1");
}

// As the controller would have written it beside the annotation.
TEST_F(ClusterTest, ABrokenNodeAnnotationLeavesTheLastOneInForce) {
    node("n1", 8, R"({"resources":{"cpu":"3"}})");
    node("n1", 8, R"({"resources":{"cpu":"-3"}})");
    pod("six", 6);
    cluster_.settle();
    EXPECT_EQ(node_of("six"), "");
    node("n1", 8);
    cluster_.settle();
    EXPECT_EQ(node_of("six"), "n1");
}

TEST_F(ClusterTest, ABindOfAPodThatHasGoneIsRefusedAndGivenBack) {
    node("n1", 8);
    pod("a", 8);
    cluster_.prepare();
    const auto plans = cluster_.step(1);
    const auto* bind = bind_in(plans);
    ASSERT_NE(bind, nullptr);
    cluster_.remove("Pod", "default", "a");
    for (const auto& plan : cluster_.carry_out(*bind)) cluster_.carry_out(plan);
    pod("b", 8);
    cluster_.settle();
    EXPECT_EQ(node_of("b"), "n1");
}

TEST_F(ClusterTest, AClassMayComeAfterThoseThatNameIt) {
    node("n1", 8);
    pod("low", 8);
    pod("high", 8, R"("priorityClassName":"high")");
    auto answers = cluster_.settle();
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(answers[1].error, "no PriorityClass with name high was found");
    support("PriorityClass", R"({"metadata":{"name":"high"},"value":100})");
    answers = cluster_.settle();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].node, "n1");
    EXPECT_EQ(answers[0].victims, std::vector<std::string>{"default/low"});
    EXPECT_EQ(node_of("low"), "gone");
}

// What stands is the decision that made others go, and where it was made. Here the second gives up a nomination that
// was in the way of the first.
TEST_F(ClusterTest, WhoPreemptsWhenAskedAgainStandsWhereItDid) {
    node("n1", 2);
    pod("low", 1, R"("priority":-5,"nodeName":"n1")");
    pod("kept", 1, R"("priority":0,"nodeName":"n1")");
    pod("first", 1);
    pod("second", 4, R"("priority":0)", "n1");
    const auto answers = cluster_.settle();
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(answers[0].name, "second");
    EXPECT_EQ(answers[1].name, "first");
    EXPECT_EQ(answers[1].victims, std::vector<std::string>{"default/low"});
    EXPECT_EQ(node_of("first"), "n1");
}

// A volume of a class that waits for its first consumer is made for the pod's node.
TEST_F(ClusterTest, VolumesAreMadeAtOnce) {
    node("n1", 8);
    support(
        "StorageClass",
        R"({"metadata":{"name":"late"},"provisioner":"csi.example.com","volumeBindingMode":"WaitForFirstConsumer"})");
    support("PersistentVolumeClaim",
            R"({"metadata":{"name":"data","namespace":"default"},"spec":{"storageClassName":"late",)"
            R"("accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}})");
    pod("a", 1, R"("priority":0,"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}])");
    cluster_.settle();
    EXPECT_EQ(node_of("a"), "n1");
    EXPECT_TRUE(cluster_.ledger().volumes().claims().seen("default/data")->fully_bound());
}

}  // namespace
}  // namespace berth::run
