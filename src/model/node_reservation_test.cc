#include "model/node_reservation.h"

#include <gtest/gtest.h>

#include "model/reservation.h"

namespace berth::model {
namespace {

constexpr int64_t kGi = 1LL << 30;

ResourceId named(std::string_view name) {
    return *intern_resource(name);
}

Node node_of(Resources machine, std::string_view annotation, std::string_view applied = "") {
    Node node;
    node.meta.name = "n1";
    node.capacity = machine;
    node.allocatable = std::move(machine);
    node.meta.annotations.set(kNodeReservation, annotation);
    if (!applied.empty()) node.meta.annotations.set(kReservationApplied, applied);
    return node;
}

Node sixteen(std::string_view annotation, std::string_view applied = "") {
    return node_of({{kCpu, 16000}, {kMemory, 32 * kGi}}, annotation, applied);
}

TEST(NodeReservation, TheListDecidesTheCpuAmount) {
    const auto view = view_of(sixteen(R"({"resources":{"cpu":"10","memory":"10Gi"},"reservedCPUs":"0-1"})"));
    EXPECT_TRUE(view.faults.empty());
    EXPECT_EQ(view.held, (Resources{{kCpu, 2000}, {kMemory, 10 * kGi}}));
    EXPECT_EQ(view.allocatable.get(kCpu), 14000);
}

TEST(NodeReservation, AResourceThatTheNodeDoesNotHaveIsAFault) {
    const auto view = view_of(sixteen(R"({"resources":{"cpus":"2","memory":"10Gi","example.com/none":"0"}})"));
    ASSERT_EQ(view.faults.size(), 1u);
    EXPECT_EQ(
        view.faults[0].message,
        R"(annotation "node.koordinator.sh/reservation": resources.cpus: must be a resource that the node has, but is "2")");
    EXPECT_EQ(view.allocatable.get(kMemory), 22 * kGi);
    EXPECT_EQ(view.allocatable.get(kCpu), 16000);
}

TEST(NodeReservation, WholeCoresAreTakenOff) {
    EXPECT_EQ(view_of(sixteen(R"({"resources":{"cpu":"2500m"}})")).allocatable.get(kCpu), 13000);
}

TEST(NodeReservation, DefaultLowersAndReservedCpusOnlyDoesNot) {
    const ResourceId gpu = named("nvidia.com/gpu");
    const Resources machine{{kCpu, 96000}, {kMemory, 512 * kGi}, {gpu, 8}};
    const auto lowered = view_of(node_of(machine, R"({"resources":{"cpu":"16","memory":"12Gi"}})"));
    EXPECT_EQ(lowered.allocatable, (Resources{{kCpu, 80000}, {kMemory, 500 * kGi}, {gpu, 8}}));
    const auto same = view_of(
        node_of(machine,
                R"({"resources":{"cpu":"16","memory":"12Gi"},"applyPolicy":"ReservedCPUsOnly","reservedCPUs":"0-3"})"));
    EXPECT_EQ(same.allocatable, machine);
    EXPECT_EQ(same.reservation.cpus, (CpuIds{0, 1, 2, 3}));
}

TEST(NodeReservation, CustomResourcesAreLoweredAndBatchOnesAreNot) {
    const ResourceId fpga = named("example.com/fpga");
    const ResourceId batch = named("kubernetes.io/batch-cpu");
    const auto view = view_of(node_of({{fpga, 4}, {batch, 9000}},
                                      R"({"resources":{"example.com/fpga":1,"kubernetes.io/batch-cpu":"1000"}})"));
    EXPECT_EQ(view.allocatable, (Resources{{fpga, 3}, {batch, 9000}}));
}

TEST(NodeReservation, ABadFieldKeepsItsLastValidValue) {
    const char* applied = R"({"resources":{"cpu":"4","memory":"8Gi"},"reservedCPUs":"0-3"})";
    for (const char* bad : {"{", "[]", R"({"resources":{"cpu":"-1","memory":"1C"},"reservedCPUs":"5-3"})",
                            R"({"resources":[],"reservedCPUs":7,"applyPolicy":3})"}) {
        const auto view = view_of(sixteen(bad, applied));
        EXPECT_FALSE(view.faults.empty()) << bad;
        EXPECT_EQ(view.held, (Resources{{kCpu, 4000}, {kMemory, 8 * kGi}})) << bad;
        EXPECT_NE(view.faults.front().message.find(kNodeReservation), std::string::npos);
        const auto again = view_of(sixteen(bad, view.applied));
        EXPECT_EQ(again.allocatable, view.allocatable) << "applied twice";
        EXPECT_EQ(again.applied, view.applied);
    }
}

TEST(NodeReservation, WhatCanBeReadCountsAndNeverLessThanBefore) {
    const auto more = view_of(sixteen(R"({"reservedCPUs":"0-5,9-7,99"})", R"({"reservedCPUs":"4-7"})"));
    EXPECT_EQ(more.reservation.cpus, (CpuIds{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(more.faults.size(), 1u);
    const auto whole = view_of(sixteen(R"({"resources":{"cpu":"400"}})"));
    EXPECT_EQ(whole.allocatable.get(kCpu), 0);
    EXPECT_EQ(whole.faults.size(), 1u);
    const auto unknown = view_of(sixteen(R"({"reservedCPUs":"0,99"})"));
    EXPECT_EQ(unknown.held.get(kCpu), 1000) << "ids that the node does not have are not counted";
    const auto vast = view_of(sixteen(R"({"reservedCPUs":"0-4294967295"})"));
    EXPECT_EQ(vast.allocatable.get(kCpu), 0) << "more than the machine is the whole machine";
    const auto policy = view_of(sixteen(R"({"resources":{"cpu":"2"},"applyPolicy":"Whatever"})"));
    EXPECT_EQ(policy.held.get(kCpu), 2000);
}

TEST(NodeReservation, AListAndAnAmountAreTwoWaysToSayCpu) {
    const auto after_list = view_of(sixteen(R"({"resources":{"cpu":"-4"}})", R"({"reservedCPUs":"0-3"})"));
    EXPECT_EQ(after_list.held.get(kCpu), 4000);
    EXPECT_EQ(after_list.applied, R"({"reservedCPUs":"0-3"})") << "the next broken one finds it too";
    const auto no_object = view_of(sixteen(R"({"resources":7})", R"({"reservedCPUs":"0-3"})"));
    EXPECT_EQ(no_object.held.get(kCpu), 4000);
    const auto after_amount = view_of(sixteen(R"({"reservedCPUs":"0-1,x"})", R"({"resources":{"cpu":"4"}})"));
    EXPECT_EQ(after_amount.held.get(kCpu), 4000);
    EXPECT_EQ(view_of(sixteen(R"({"reservedCPUs":"0-5,x"})", R"({"resources":{"cpu":"4"}})")).held.get(kCpu), 6000);
    const auto valid =
        view_of(sixteen(R"({"resources":{"cpu":"-4"},"reservedCPUs":"0"})", R"({"reservedCPUs":"0-3"})"));
    EXPECT_EQ(valid.held.get(kCpu), 1000) << "a list that can be read decides";
    EXPECT_EQ(view_of(sixteen(R"({"resources":{"memory":"-4"}})", R"({"reservedCPUs":"0-3"})")).held.get(kCpu), 0);
}

TEST(NodeReservation, PodSlotsAreAmountsToo) {
    const auto view = view_of(node_of({{kCpu, 16000}, {kPods, 110}}, R"({"resources":{"pods":"10"}})"));
    EXPECT_EQ(view.allocatable.get(kPods), 100);
    EXPECT_EQ(view.applied, R"({"resources":{"pods":"10"}})");
    const auto broken =
        view_of(node_of({{kCpu, 16000}, {kPods, 110}}, R"({"resources":{"pods":"ten"}})", view.applied));
    EXPECT_EQ(broken.allocatable.get(kPods), 100);
}

TEST(NodeReservation, TheHintForAUnitThatDoesNotExist) {
    const auto view = view_of(sixteen(R"({"resources":{"cpu":"1C"}})"));
    ASSERT_EQ(view.faults.size(), 1u);
    EXPECT_NE(view.faults[0].message.find(R"(such as "1", but is "1C")"), std::string::npos) << view.faults[0].message;
    EXPECT_EQ(view.faults[0].field, "metadata.annotations[node.koordinator.sh/reservation].resources.cpu");
}

TEST(NodeReservation, RemovedMeansEverythingComesBack) {
    Node node = sixteen("", R"({"resources":{"cpu":"4"}})");
    node.meta.annotations.erase(kNodeReservation);
    const auto view = view_of(node);
    EXPECT_EQ(view.allocatable.get(kCpu), 16000);
    EXPECT_TRUE(view.applied.empty());
}

TEST(CpuList, PrintsWhatItReads) {
    std::string fault;
    EXPECT_EQ(cpu_list_text(read_cpu_list("8,0-3,2", fault)), "0-3,8");
    EXPECT_TRUE(fault.empty());
    EXPECT_EQ(cpu_list_text(read_cpu_list("0-4294967295", fault)), "0-8191") << "what can be read of it";
    EXPECT_FALSE(fault.empty());
    EXPECT_TRUE(read_cpu_list("99999999999", fault).empty());
    EXPECT_TRUE(read_cpu_list("-1", fault).empty());
}

}  // namespace
}  // namespace berth::model
