#include "run/agent_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "model/times.h"
#include "run/scripted_server.h"

namespace berth::run {
namespace {

const std::string kUid = "11111111-2222-3333-4444-555555555555";

// A tree in memory: what is in it outlives the driver.
struct Groups {
    std::map<std::string, std::string> cpus, quotas;
    size_t writes = 0;
};
class MemoryTree final : public node::Tree {
public:
    explicit MemoryTree(Groups& groups) : groups_(groups) {}
    const node::Hierarchy& hierarchy() const override { return tree_; }
    Result<std::string> read(const std::string& group, node::File file) override {
        if (file == node::File::CpuUsage || file == node::File::MemoryUsage) return std::string("0");
        const auto& from = file == node::File::Cpuset ? groups_.cpus : groups_.quotas;
        const auto found = from.find(group);
        if (found == from.end()) return base::not_found(group);
        return found->second;
    }
    Status write(const std::string& group, node::File file, const std::string& value) override {
        ++groups_.writes;
        (file == node::File::Cpuset ? groups_.cpus : groups_.quotas)[group] = value;
        return {};
    }
    Result<std::vector<std::string>> children(const std::string&) override { return std::vector<std::string>(); }

private:
    Groups& groups_;
    const node::Hierarchy tree_;
};

std::string node_with(const std::string& annotations) {
    return R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"u","annotations":)" + annotations +
           R"(},"status":{"capacity":{"cpu":"4","memory":"8Gi"},"allocatable":{"cpu":"4","memory":"8Gi"}}})";
}

class AgentTest : public testing::Test {
protected:
    AgentTest() {
        script->has("nodes", node_with(R"({"node.koordinator.sh/reservation":"{\"reservedCPUs\":\"0\"}"})"));
        script->has("nodes", R"({"kind":"Node","metadata":{"name":"n2","uid":"v"}})");
        script->has("pods",
                    R"({"kind":"Pod","metadata":{"namespace":"ns","name":"ls","uid":")" + kUid +
                        R"(","labels":{"koordinator.sh/qosClass":"LS"}},"spec":{"nodeName":"n1","containers":)"
                        R"([{"name":"c","resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Running"}})");
        for (const auto& group : {std::string("kubepods/besteffort"), pod}) {
            groups.cpus[group] = "0-3";
            groups.quotas[group] = "-1";
        }
    }
    AgentDriver agent(bool restore = false) {
        AgentDriver::Options options;
        options.node = "n1";
        for (int32_t id = 0; id < 4; ++id) options.machine.cpus.push_back({id, id, 0, 0});
        options.machine.numas = {{0, 0, {}}};
        options.restore = restore;
        return AgentDriver({script->server(), [] {}, std::make_unique<MemoryTree>(groups),
                            []() -> Result<node::Kubelet> { return node::Kubelet(); }},
                           std::move(options));
    }
    bool sent(const std::string& method, const std::string& path, const std::string& part) {
        return script
            ->find([&](const auto& request) {
                return request.method == method && request.path.starts_with(path) &&
                       request.body.find(part) != std::string::npos;
            })
            .has_value();
    }

    const std::string pod = "kubepods/burstable/pod" + kUid;
    const std::string kTopologies = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies";
    const std::string kMetrics = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics";
    std::shared_ptr<Script> script = std::make_shared<Script>();
    Groups groups;
    base::ManualClock clock{*model::parse_time("2026-01-01T00:00:00Z")};
};

TEST_F(AgentTest, ReservedCoresAreKeptFreeAndReported) {
    script->answer_all({200, "{}", 2});
    AgentDriver driver = agent();
    EXPECT_TRUE(turn_until(driver, clock, [&] { return groups.cpus[pod] == "1-3"; }));
    EXPECT_TRUE(turn_until(driver, clock, [&] { return sent("POST", kTopologies, R"("name":"n1")"); }));
    EXPECT_TRUE(sent("POST", kTopologies, R"({\"reservedCPUs\":\"0\"})"));
    EXPECT_TRUE(turn_until(driver, clock, [&] { return sent("POST", kMetrics, "NodeMetric"); }));
    script->tell("nodemetrics", R"({"kind":"NodeMetric","metadata":{"name":"n1","uid":"m"}})", 3);
    EXPECT_TRUE(turn_until(driver, clock, [&] { return sent("PATCH", kMetrics + "/n1/status", "updateTime"); }));
    EXPECT_TRUE(sent("PATCH", kMetrics + "/n1/status", R"("namespace":"ns","name":"ls")"));
    script->tell("nodes", node_with("{}"), 4);
    EXPECT_TRUE(turn_until(driver, clock, [&] { return groups.cpus[pod] == "0-3"; })) << "all comes back";
}

// Who makes the object need not rest before he fills it.
TEST_F(AgentTest, TheFirstMetricFollowsItsObject) {
    script->answer_all({200, "{}", 2});
    AgentDriver driver = agent();
    ASSERT_TRUE(turn_until(driver, clock, [&] { return sent("POST", kMetrics, "NodeMetric"); }));
    script->tell("nodemetrics", R"({"kind":"NodeMetric","metadata":{"name":"n1","uid":"m"}})", 3);
    for (int i = 0; i < 3; ++i) {
        driver.turn(moment(clock));
        clock.advance(std::chrono::seconds(1));
    }
    EXPECT_TRUE(sent("PATCH", kMetrics + "/n1/status", "prodReclaimableMetric"));
}

TEST_F(AgentTest, WhatIsSoIsNotWritten) {
    script->answer_all({200, "{}", 2});
    AgentDriver driver = agent();
    ASSERT_TRUE(turn_until(driver, clock, [&] { return sent("POST", kMetrics, "NodeMetric"); }));
    Json object;
    script->find([&](const auto& request) {
        if (request.method == "POST" && request.path.starts_with(kTopologies)) object = *base::parse_json(request.body);
        return false;
    });
    base::object_at(object, {"metadata"})["uid"] = "t";
    base::object_at(object, {"metadata", "labels"})["someone"] = "else";
    const JsonObject lent{{"name", "kubernetes.io/batch-cpu"}, {"allocatable", "500"}};
    object.at("zones").at(0).at("resources").as_array().push_back(lent);  // the controllers' word
    script->tell("noderesourcetopologies", base::to_text(object), 3);
    const auto writes = [&] {
        size_t count = 0;
        script->find([&](const auto& request) {
            count += request.path.starts_with(kTopologies);
            return false;
        });
        return count;
    };
    driver.turn(moment(clock));
    const size_t before = writes(), files = groups.writes;
    for (int i = 0; i < 100; ++i) {
        clock.advance(std::chrono::seconds(1));
        driver.turn(moment(clock));
    }
    EXPECT_EQ(writes(), before);
    EXPECT_LE(groups.writes - files, 4u) << "best-effort pods may move by what is used; nothing else does";
    script->tell("nodes", node_with("{}"), 4);
    EXPECT_TRUE(turn_until(driver, clock, [&] {
        return sent("PATCH", kTopologies + "/n1", R"("node.koordinator.sh/reservation":null)");
    }));
    EXPECT_TRUE(sent("PATCH", kTopologies + "/n1", R"({"name":"kubernetes.io/batch-cpu","allocatable":"500"})"));
}

TEST_F(AgentTest, GivesBackWhenItStops) {
    script->answer_all({200, "{}", 2});
    AgentDriver driver = agent(true);
    ASSERT_TRUE(turn_until(driver, clock, [&] { return groups.cpus[pod] == "1-3"; }));
    driver.stop();
    EXPECT_EQ(groups.cpus[pod], "0-3");
    EXPECT_EQ(groups.cpus["kubepods/besteffort"], "0-3");
    EXPECT_EQ(groups.quotas["kubepods/besteffort"], "-1");
}

TEST_F(AgentTest, NoCoreLeftIsAConditionOfTheNode) {
    script->answer_all({200, "{}", 2});
    AgentDriver driver = agent();
    script->tell("nodes", node_with(R"({"node.koordinator.sh/reservation":"{\"reservedCPUs\":\"0-3\"}"})"), 2);
    EXPECT_TRUE(turn_until(driver, clock, [&] {
        return sent("PATCH", "/api/v1/nodes/n1/status", R"("type":"BerthBestEffortStarved","status":"True")");
    }));
    EXPECT_EQ(groups.quotas["kubepods/besteffort"], "2000");
    EXPECT_EQ(groups.cpus["kubepods/besteffort"], "0-3") << "never an empty one";
}

}  // namespace
}  // namespace berth::run
