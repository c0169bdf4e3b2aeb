#include "node/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "base/json_view.h"
#include "model/cpu_set.h"
#include "node/topology_object.h"

namespace berth::node {
namespace {

constexpr const char* kPodUid = "11111111-2222-3333-4444-555555555555";
const std::string kContainer(64, 'a');

std::string list(const model::CpuIds& cpus) {
    return model::cpu_list_text(cpus);
}

Machine machine_of(model::CpuTopology cpus) {
    Machine out{std::move(cpus), {}};
    std::map<int32_t, int> numas;
    for (const auto& cpu : out.cpus) ++numas[cpu.numa];
    for (const auto& [id, count] : numas) out.numas.push_back({id, 0, {}});
    return out;
}

// Sockets of `cores` cores, siblings i and i + half.
Machine paired(int32_t sockets, int32_t cores) {
    model::CpuTopology cpus;
    const int32_t half = sockets * cores;
    for (int32_t id = 0; id < 2 * half; ++id) cpus.push_back({id, id % half, id % half / cores, id % half / cores});
    return machine_of(std::move(cpus));
}

model::Node node_of(const std::string& annotations, const std::string& status = "{}") {
    const std::string text = R"({"metadata":{"name":"test-node1","uid":"u-1","annotations":)" + annotations +
                             R"(},"status":)" + status + "}";
    base::JsonParser parser;
    const auto view = parser.parse(text);
    auto node = model::read_node(*view);
    EXPECT_TRUE(node);
    return *node;
}

std::string reserving(const std::string& value) {
    return base::to_text(JsonObject{{"node.koordinator.sh/reservation", value}});
}

Json pod_document(const std::string& name, const std::string& qos, const std::string& cpuset = "") {
    JsonObject annotations;
    if (!cpuset.empty()) annotations[kResourceStatus] = base::to_text(JsonObject{{"cpuset", cpuset}});
    const auto kube = qos == "BE" ? "BestEffort" : qos == "LS" ? "Burstable" : "Guaranteed";
    return JsonObject{
        {"metadata", JsonObject{{"namespace", "ns"},
                                {"name", name},
                                {"uid", kPodUid},
                                {"labels", JsonObject{{"koordinator.sh/qosClass", qos}}},
                                {"annotations", annotations}}},
        {"spec", JsonObject{{"nodeName", "test-node1"}}},
        {"status", JsonObject{{"phase", "Running"},
                              {"qosClass", kube},
                              {"containerStatuses",
                               JsonArray{JsonObject{{"name", "c"}, {"containerID", "containerd://" + kContainer}}}}}}};
}

NodePod pod(const std::string& name, const std::string& qos, const std::string& cpuset = "") {
    std::vector<std::string> faults;
    auto out = read_node_pod(pod_document(name, qos, cpuset), "test-node1", faults);
    EXPECT_TRUE(out && faults.empty());
    return *out;
}

Situation situation(Machine machine, model::Node node) {
    Situation out;
    out.machine = std::move(machine);
    out.node = std::move(node);
    return out;
}

std::string reserved(const Machine& machine, const std::string& value) {
    return list(plan(situation(machine, node_of(reserving(value)))).cores.reserved);
}

std::string annotation(const Plan& plan, std::string_view key) {
    return std::string(base::find_string(plan.topology, {"metadata", "annotations", key}));
}

std::string value_of(const Json& document, const std::string& group, const std::string& file) {
    std::string out = "-";
    for (const auto& write : document.at("writes").as_array()) {
        if (base::find_string(write, {"group"}) == group && base::find_string(write, {"file"}) == file)
            out = base::find_string(write, {"value"});
    }
    return out;
}

TEST(NodePlan, CoresAndAmountsAreOneReservation) {
    const auto machine = paired(2, 6);
    EXPECT_EQ(reserved(machine, R"({"resources":{"cpu":"10","memory":"10"},"reservedCPUs":"0-1"})"), "0-1");
    EXPECT_EQ(reserved(machine, R"({"resources":{"cpu":"2500m"}})"), "0-1,12");
    EXPECT_EQ(reserved(machine, R"({"resources":{"cpu":"2"}})"), "0,12");
    EXPECT_EQ(reserved(machine, R"({"reservedCPUs":"0,6","applyPolicy":"ReservedCPUsOnly"})"), "0,6");
    EXPECT_EQ(reserved(machine, R"({"resources":{"memory":"2Gi"}})"), "");
}

TEST(NodePlan, QuantitiesBecomeWholeSocketsThenNumaNodesThenCores) {
    model::CpuTopology even;
    for (int32_t id = 0; id < 12; ++id) even.push_back({id, id % 6, id % 2, id % 2});
    EXPECT_EQ(reserved(machine_of(even), R"({"resources":{"cpu":"2"}})"), "0,6");
    EXPECT_EQ(reserved(machine_of(even), R"({"resources":{"cpu":"6"}})"), "0,2,4,6,8,10");
    EXPECT_EQ(reserved(machine_of(even), R"({"resources":{"cpu":"8"}})"), "0-2,4,6-8,10");
    model::CpuTopology large;
    for (int32_t id = 0; id < 80; ++id) large.push_back({id, id % 40, id % 40 / 10, id % 40 / 20});
    EXPECT_EQ(reserved(machine_of(large), R"({"resources":{"cpu":"40"}})"), "0-19,40-59");
    EXPECT_EQ(reserved(machine_of(large), R"({"resources":{"cpu":"20"}})"), "0-9,40-49");
}

TEST(NodePlan, TheSeedsObjectFieldByField) {
    const auto made = plan(situation(paired(2, 6), node_of(reserving(R"({"reservedCPUs":"0,6"})"))));
    EXPECT_TRUE(made.faults.empty());
    EXPECT_EQ(base::find_string(made.topology, {"apiVersion"}), "topology.node.k8s.io/v1alpha1");
    EXPECT_EQ(base::find_string(made.topology, {"kind"}), "NodeResourceTopology");
    EXPECT_EQ(base::find_string(made.topology, {"metadata", "name"}), "test-node1");
    EXPECT_EQ(annotation(made, "node.koordinator.sh/reservation"), R"({"reservedCPUs":"0,6"})");
    EXPECT_EQ(annotation(made, "kubelet.koordinator.sh/cpu-manager-policy"), R"({"policy":"none"})");
    EXPECT_EQ(annotation(made, "node.koordinator.sh/cpu-shared-pools"),
              R"([{"socket":0,"node":0,"cpuset":"1-5,12-17"},{"socket":1,"node":1,"cpuset":"7-11,18-23"}])");
    EXPECT_TRUE(annotation(made, "node.koordinator.sh/cpu-topology")
                    .starts_with(R"({"detail":[{"id":0,"core":0,"socket":0,"node":0},)"));
    EXPECT_EQ(base::to_text(made.topology.at("metadata").at("labels")),
              R"({"app.kubernetes.io/managed-by":"Koordinator"})");
    EXPECT_EQ(
        base::to_text(made.topology.at("metadata").at("ownerReferences")),
        R"([{"apiVersion":"v1","kind":"Node","name":"test-node1","controller":true,"blockOwnerDeletion":true,"uid":"u-1"}])");
    EXPECT_EQ(base::to_text(made.topology.at("topologyPolicies")), R"(["None"])");
    ASSERT_EQ(made.topology.at("zones").as_array().size(), 2u);
    EXPECT_EQ(
        base::to_text(made.topology.at("zones").at(0)),
        R"({"name":"node-0","type":"Node","resources":[{"name":"cpu","capacity":"12","allocatable":"12","available":"12"}]})");
    const auto by_quantity = plan(situation(paired(2, 6), node_of(reserving(R"({"resources":{"cpu":"2"}})"))));
    EXPECT_EQ(annotation(by_quantity, "node.koordinator.sh/reservation"), R"({"reservedCPUs":"0,12"})");
}

TEST(NodePlan, PoolsLeaveOutWhoHasCoresOfHisOwn) {
    auto in = situation(paired(2, 6), node_of(R"({"node.koordinator.sh/reservation":"{\"reservedCPUs\":\"0\"}",)"
                                              R"("node.koordinator.sh/system-qos-resource":"{\"cpuset\":\"1\"}"})"));
    in.pods = {pod("lse", "LSE", "2"), pod("lsr", "LSR", "3,15")};
    in.kubelet.cpu_policy = "static";
    in.kubelet.reserved = {5};
    in.kubelet.statics = {{kPodUid, "c", {4}}};
    const auto made = plan(in);
    EXPECT_EQ(list(ls_cores(made.cores)), "5-14,16-23");
    EXPECT_EQ(list(be_cores(made.cores)), "3,5-23");
    EXPECT_EQ(annotation(made, "kubelet.koordinator.sh/cpu-manager-policy"),
              R"({"policy":"static","reservedCPUs":"5"})");
    EXPECT_TRUE(
        annotation(made, "node.koordinator.sh/pod-cpu-allocs").find(R"("cpuset":"4","managedByKubelet":true)") !=
        std::string::npos);
}

Situation on_twenty(const std::string& annotations) {
    model::CpuTopology cpus;
    for (int32_t id = 0; id < 20; ++id) cpus.push_back({id, id, 0, 0});
    auto in =
        situation(machine_of(cpus), node_of(annotations, R"({"capacity":{"cpu":"20"},"allocatable":{"cpu":"20"}})"));
    in.slo.cpu_percent = 70;
    in.pods = {pod("ls", "LS"), pod("be", "BE")};
    in.usage.node.cpu = 12000;
    in.usage.pods = {{"ns/ls", {8000, 0}}, {"ns/be", {2000, 0}}};
    return in;
}

TEST(NodePlan, SuppressionLeavesWhatIsAllowed) {
    auto in = on_twenty("{}");
    EXPECT_EQ(plan(in).suppressed.milli, 4000);
    EXPECT_EQ(plan(in).suppressed.quota, 400000);
    EXPECT_EQ(plan(in).suppressed.cpus.size(), 4u);
    in = on_twenty(reserving(R"({"resources":{"cpu":"6"}})"));
    EXPECT_EQ(plan(in).suppressed.milli, 0);
    EXPECT_EQ(plan(in).suppressed.quota, kLeastQuota);
    EXPECT_EQ(plan(in).suppressed.cpus.size(), 2u);
    in.kubelet.reserved_milli = 1000;  // the larger of both counts
    EXPECT_EQ(plan(in).suppressed.milli, 0);
    in = on_twenty("{}");
    in.kubelet.reserved_milli = 3000;
    EXPECT_EQ(plan(in).suppressed.milli, 3000);
    in.slo.cpu_min_percent = 25;
    EXPECT_EQ(plan(in).suppressed.milli, 5000);
}

TEST(NodePlan, CoresForBestEffortInProportion) {
    model::CpuTopology cpus;
    for (int32_t id = 0; id < 8; ++id) cpus.push_back({id, id / 2, id / 4, id / 4});
    auto in = situation(machine_of(cpus), node_of(reserving(R"({"reservedCPUs":"3"})")));
    in.pods = {pod("lsr", "LSR", "0,6"), pod("lse", "LSE", "7")};
    const auto made = plan(in);
    EXPECT_EQ(list(be_cpus(in.machine, made.cores, 3000, std::nullopt)), "0,4-5");
    EXPECT_EQ(list(be_cpus(in.machine, made.cores, 0, std::nullopt)), "4-5") << "at least two, and 0 of them LSR's";
    EXPECT_EQ(list(be_cpus(in.machine, made.cores, 90000, std::nullopt)), "0-2,4-6");
    EXPECT_EQ(be_cpus(in.machine, made.cores, 90000, model::CpuIds{4, 5}).size(), 3u) << "a tenth of 8 at a time";
}

TEST(NodePlan, WholeCoresInTurnOverSockets) {
    const auto machine = paired(2, 6);
    Cores cores;
    cores.all = machine.ids();
    EXPECT_EQ(list(be_cpus(machine, cores, 4000, std::nullopt)), "0,6,12,18");
    EXPECT_EQ(list(be_cpus(machine, cores, 5000, std::nullopt)), "0-1,6,12,18");
}

TEST(NodePlan, QuotaGrowsByStepsAndShrinksAtOnce) {
    EXPECT_EQ(next_quota(80000, 20000, 1'000'000), 1'800'000);
    EXPECT_EQ(next_quota(80000, 20000, 2'400'000), 2'000'000);
    EXPECT_EQ(next_quota(80000, 20000, 1'980'000), 1'980'000);
    EXPECT_EQ(next_quota(80000, 20000, -1), 2'000'000);
    EXPECT_EQ(next_quota(80000, 20000, std::nullopt), 2'000'000);
    EXPECT_EQ(next_quota(80000, 0, 50'000), kLeastQuota);
}

TEST(NodePlan, ThePolicyDecidesWhatIsWrittenAndTheOtherIsGivenBack) {
    auto in = on_twenty("{}");
    in.usage.quota = 300000;
    in.usage.cpuset = model::CpuIds{0, 1, 2};
    auto document = plan_document(in, plan(in), {});
    EXPECT_EQ(value_of(document, "kubepods/besteffort", "cpu.cfs_quota_us"), "-1");
    EXPECT_EQ(value_of(document, "kubepods/besteffort", "cpuset.cpus"), "0-3");
    in.slo.by_quota = true;
    document = plan_document(in, plan(in), {});
    EXPECT_EQ(value_of(document, "kubepods/besteffort", "cpu.cfs_quota_us"), "400000");
    EXPECT_EQ(value_of(document, "kubepods/besteffort", "cpuset.cpus"), "0-19");
    in.slo.enable = false;
    document = plan_document(in, plan(in), {});
    EXPECT_EQ(value_of(document, "kubepods/besteffort", "cpu.cfs_quota_us"), "-1");
    in.tree.v2 = true;
    document = plan_document(in, plan(in), {});
    EXPECT_EQ(value_of(document, "kubepods/besteffort", "cpu.max"), "max 100000");
}

TEST(NodePlan, NoCoreLeftIsSaidAndNothingEmptyIsWritten) {
    auto in = situation(paired(1, 2), node_of(reserving(R"({"reservedCPUs":"0-3"})")));
    in.pods = {pod("be", "BE"), pod("ls", "LS")};
    const auto made = plan(in);
    EXPECT_TRUE(made.nothing_left);
    EXPECT_EQ(made.faults.size(), 2u);
    const auto document = plan_document(in, made, {});
    EXPECT_EQ(value_of(document, "kubepods/besteffort", "cpu.cfs_quota_us"), "2000");
    EXPECT_EQ(value_of(document, "kubepods/besteffort", "cpuset.cpus"), "-");
}

TEST(NodePlan, PodsGetTheirCoresElseTheSharedOnes) {
    auto in = situation(paired(2, 6), node_of(reserving(R"({"reservedCPUs":"0,6"})")));
    in.pods = {pod("lsr", "LSR", "1,13"), pod("ls", "LS")};
    auto document = plan_document(in, plan(in), {});
    const std::string bound = fmt::format("kubepods/pod{}/{}", kPodUid, kContainer);
    EXPECT_EQ(value_of(document, bound, "cpuset.cpus"), "1,13");
    EXPECT_EQ(value_of(document, bound, "cpu.cfs_quota_us"), "-1");
    EXPECT_EQ(value_of(document, fmt::format("kubepods/burstable/pod{}/{}", kPodUid, kContainer), "cpuset.cpus"),
              "2-5,7-12,14-23");
    in.tree.systemd = true;
    document = plan_document(in, plan(in), {});
    EXPECT_EQ(
        value_of(document,
                 fmt::format("kubepods.slice/kubepods-burstable.slice/"
                             "kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-{}.scope",
                             kContainer),
                 "cpuset.cpus"),
        "2-5,7-12,14-23");
}

TEST(NodePlan, ABoundPodKeepsReservedCoresUntilItIsMoved) {
    auto in = situation(paired(2, 6), node_of(reserving(R"({"reservedCPUs":"0-3"})")));
    in.pods = {pod("lsr", "LSR", "0-1")};
    const auto made = plan(in);
    ASSERT_EQ(made.faults.size(), 1u);
    EXPECT_NE(made.faults[0].find("\"ns/lsr\" is bound to the reserved CPUs 0-1"), std::string::npos) << made.faults[0];
    EXPECT_EQ(value_of(plan_document(in, made, {}), fmt::format("kubepods/pod{}", kPodUid), "cpuset.cpus"), "0-1");
    EXPECT_EQ(list(ls_cores(made.cores)), "4-23");
}

TEST(NodePlan, WhatTheKubeletGaveIsItsOwn) {
    auto in = situation(paired(2, 6), node_of("{}"));
    in.pods = {pod("ls", "LSR")};
    in.kubelet.cpu_policy = "static";
    in.kubelet.statics = {{kPodUid, "c", {4}}};
    EXPECT_EQ(
        value_of(plan_document(in, plan(in), {}), fmt::format("kubepods/pod{}/{}", kPodUid, kContainer), "cpuset.cpus"),
        "-");
}

TEST(NodePlan, HostileUidsAndIdsAreRefused) {
    for (const char* uid :
         {"", "../../../etc", "11111111-2222-3333-4444-55555555555/", "x", "11111111222233334444555555555555x"}) {
        auto document = pod_document("p", "LS");
        base::object_at(document, {"metadata"})["uid"] = uid;
        std::vector<std::string> faults;
        const auto read = read_node_pod(document, "test-node1", faults);
        ASSERT_TRUE(read);
        EXPECT_TRUE(read->uid.empty() && read->containers.empty()) << uid;
        EXPECT_EQ(faults.size(), 1u);
        auto in = situation(paired(1, 2), node_of("{}"));
        in.pods = {*read};
        EXPECT_EQ(plan(in).goals.size(), 1u) << "the best-effort root alone";
    }
    auto document = pod_document("p", "LS");
    document.at("status").at("containerStatuses").at(0).as_object()["containerID"] = "containerd://../x";
    std::vector<std::string> faults;
    EXPECT_TRUE(read_node_pod(document, "test-node1", faults)->containers.empty());
    EXPECT_EQ(faults.size(), 1u);
}

// Every write keeps each group within its parent, from anything to anything, and ends where it shall.
TEST(CgroupWrites, NeverGiveAGroupMoreThanItsParent) {
    const uint64_t seed = std::random_device{}();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const auto some = [&](const model::CpuIds& of) {
        model::CpuIds out;
        for (const int32_t cpu : of) {
            if (random() % 2 == 0) out.push_back(cpu);
        }
        return out.empty() ? model::CpuIds{of[random() % of.size()]} : out;
    };
    const model::CpuIds all{0, 1, 2, 3, 4, 5};
    for (int round = 0; round < 500; ++round) {
        std::map<std::string, model::CpuIds> has{{"r", some(all)}};
        Goals goals{{"r", some(all), std::nullopt}};
        for (const char* pod : {"r/a", "r/b"}) {
            has[pod] = some(has["r"]);
            goals.push_back({pod, some(*goals[0].cpus), std::nullopt});
            const auto at = goals.size() - 1;
            has[pod + std::string("/c")] = some(has[pod]);
            goals.push_back({pod + std::string("/c"), some(*goals[at].cpus), std::nullopt});
        }
        const auto now = [&](const std::string& group) { return GroupNow{has[group], std::nullopt}; };
        for (const auto& write : writes_for({}, goals, now)) {
            std::string fault;
            const auto cpus = model::read_cpu_list(write.value, fault);
            ASSERT_FALSE(cpus.empty());
            has[write.group] = cpus;
            for (const auto& [group, its] : has) {
                const std::string parent(parent_group(group));
                if (parent.empty()) continue;
                ASSERT_TRUE(model::has_cpus(has[parent], its)) << group << " in round " << round;
            }
        }
        for (const auto& goal : goals) EXPECT_EQ(has[goal.group], *goal.cpus);
    }
}

TEST(NodeSlo, IsReadOrRefused) {
    const auto read = [](const char* text) { return read_slo(*base::parse_json(text)); };
    EXPECT_EQ(read("{}")->cpu_percent, 65);
    const auto slo = read(
        R"({"spec":{"resourceUsedThresholdWithBE":{"enable":false,"cpuSuppressThresholdPercent":70,"cpuSuppressPolicy":"cfsQuota","memoryEvictThresholdPercent":80}}})");
    ASSERT_TRUE(slo);
    EXPECT_FALSE(slo->enable);
    EXPECT_TRUE(slo->by_quota);
    EXPECT_EQ(slo->cpu_percent, 70);
    EXPECT_EQ(slo->memory_evict_lower_percent, 78);
    EXPECT_FALSE(read(R"({"spec":{"resourceUsedThresholdWithBE":{"cpuSuppressThresholdPercent":170}}})"));
    EXPECT_FALSE(read(R"({"spec":{"resourceUsedThresholdWithBE":{"cpuSuppressPolicy":"gently"}}})"));
}

TEST(NodeUsage, IsReadOrRefused) {
    const auto read = [](const char* text) { return read_usage(*base::parse_json(text)); };
    const auto usage = read(
        R"({"node":{"cpu":"12","memory":"1Gi"},"pods":{"ns/a":{"cpu":"2500m"}},"current":{"quota":-1,"cpuset":"2,3,6,7"}})");
    ASSERT_TRUE(usage) << usage.error().message;
    EXPECT_EQ(usage->system().cpu, 9500);
    EXPECT_EQ(*usage->quota, -1);
    EXPECT_EQ(list(*usage->cpuset), "2-3,6-7");
    EXPECT_EQ(read(R"({"node":{"cpu":"-1"}})").error().message, "node.cpu: \"-1\" is no amount");
    EXPECT_FALSE(read(R"({"current":{"cpuset":"5-3"}})"));
    EXPECT_FALSE(read(R"({"pods":7})"));
}

TEST(Kubelet, ConfigurationAndState) {
    Kubelet kubelet;
    ASSERT_TRUE(read_kubelet_config(
        *base::parse_json(R"({"cpuManagerPolicy":"static","cpuManagerPolicyOptions":{"full-pcpus-only":"true"},)"
                          R"("kubeReserved":{"cpu":"500m"},"systemReserved":{"cpu":"1","memory":"1Gi"}})"),
        kubelet));
    EXPECT_EQ(kubelet.reserved_milli, 1500);
    EXPECT_EQ(kubelet.cpu_options.at("full-pcpus-only"), "true");
    ASSERT_TRUE(read_cpu_manager_state(
        *base::parse_json(R"({"policyName":"static","defaultCpuSet":"0-1","entries":{"u":{"c":"2-3"}},"checksum":1})"),
        kubelet));
    ASSERT_EQ(kubelet.statics.size(), 1u);
    EXPECT_EQ(list(kubelet.statics[0].cpus), "2-3");
    EXPECT_FALSE(read_kubelet_config(*base::parse_json(R"({"reservedSystemCPUs":"3-1"})"), kubelet));
    EXPECT_FALSE(read_cpu_manager_state(*base::parse_json(R"({"entries":{"u":{"c":7}}})"), kubelet));
}

}  // namespace
}  // namespace berth::node
