// What the server makes of NodeResourceTopologies and Devices as they are written.
#include <gtest/gtest.h>

#include "api/test_front.h"

namespace berth::api {
namespace {

const std::string kTopologies = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies";
const std::string kDevices = "/apis/scheduling.koordinator.sh/v1alpha1/devices";

std::string devices(const std::string& name, const std::string& list) {
    return R"({"metadata":{"name":")" + name + R"("},"spec":{"devices":[)" + list + "]}}";
}

TEST(Machines, ATopologyIsKeptMemberByMember) {
    TestFront t;
    const std::string body =
        R"({"kind":"NodeResourceTopology","apiVersion":"topology.node.k8s.io/v1alpha1","metadata":{"name":"n1",)"
        R"("annotations":{"node.koordinator.sh/cpu-topology":"{\"detail\":[]}"}},"topologyPolicies":["None"],)"
        R"("zones":[{"name":"node-0","type":"Node","parent":"s0","costs":[{"name":"node-0","value":10}],)"
        R"("attributes":[{"name":"a","value":"b"}],"resources":[{"name":"cpu","capacity":"4","allocatable":"4",)"
        R"("available":"2500m"}]}]})";
    const auto made = t.ask("POST", kTopologies, body);
    ASSERT_EQ(made.code, 201) << made.raw.body;
    const auto read = t.ask("GET", kTopologies + "/n1");
    EXPECT_EQ(base::to_text(*base::find(read.json, {"zones"})),
              R"([{"name":"node-0","type":"Node","parent":"s0","costs":[{"name":"node-0","value":10}],)"
              R"("attributes":[{"name":"a","value":"b"}],"resources":[{"name":"cpu","capacity":"4","allocatable":"4",)"
              R"("available":"2500m"}]}])");
    EXPECT_EQ(read.text({"metadata", "annotations", "node.koordinator.sh/cpu-topology"}), R"({"detail":[]})");
    EXPECT_EQ(base::find(t.ask("GET", kTopologies).json, {"items"})->as_array().size(), 1u);
    EXPECT_EQ(t.ask("GET", "/apis/topology.node.k8s.io/v1alpha1/namespaces/default/noderesourcetopologies").code, 404);
}

TEST(Machines, ATopologyWithTwoZonesOfOneNameIsRefused) {
    TestFront t;
    expect_refused(t.ask("POST", kTopologies,
                         R"({"metadata":{"name":"n1"},"topologyPolicies":["None"],)"
                         R"("zones":[{"name":"node-0","type":"Node"},{"name":"node-0","type":"Node"}]})"),
                   R"(zones[1].name: Duplicate value: "node-0")");
    expect_refused(t.ask("POST", kTopologies,
                         R"({"metadata":{"name":"n1"},"topologyPolicies":["None"],"zones":[{"name":"node-0"}]})"),
                   "zones[0].type: Required value");
}

TEST(Machines, CpusThatCannotBeAreRefused) {
    TestFront t;
    const auto topology = [](const std::string& detail) {
        return R"({"metadata":{"name":"n1","annotations":{"node.koordinator.sh/cpu-topology":")" + detail +
               R"("}},"topologyPolicies":["None"]})";
    };
    const std::string cpu = R"({\"id\":0,\"core\":0,\"socket\":0,\"node\":0})";
    expect_refused(t.ask("POST", kTopologies, topology(R"({\"detail\":[)" + cpu + "," + cpu + "]}")),
                   "CPU 0 is there twice");
    expect_refused(t.ask("POST", kTopologies, topology("{")), "metadata.annotations[node.koordinator.sh/cpu-topology]");
    EXPECT_EQ(t.ask("POST", kTopologies, topology(R"({\"detail\":[)" + cpu + "]}")).code, 201);
}

TEST(Machines, DevicesAreKeptMemberByMember) {
    TestFront t;
    const std::string gpu = R"({"type":"gpu","labels":{"a":"b"},"id":"GPU-1","minor":0,"moduleID":3,"health":true,)"
                            R"("resources":{"koordinator.sh/gpu-core":"100"},)"
                            R"("topology":{"socketID":0,"nodeID":1,"pcieID":"p","busID":"0000:00"},)"
                            R"("vfGroups":[{"labels":{"c":"d"},"vfs":[{"minor":0,"busID":"0000:01"}]}]})";
    const auto made = t.ask("POST", kDevices, devices("n1", gpu + R"(,{"type":"rdma","minor":0})"));
    ASSERT_EQ(made.code, 201) << made.raw.body;
    EXPECT_EQ(base::to_text(*base::find(made.json, {"spec", "devices"})),
              "[" + gpu + R"(,{"type":"rdma","minor":0,"health":false}])");
    const auto said =
        t.ask("PATCH", kDevices + "/n1",
              R"({"status":{"allocations":[{"type":"gpu","entries":[{"name":"p","minors":[0]}]}]}})", kMerge);
    EXPECT_EQ(said.code, 200) << said.raw.body;
    EXPECT_NE(base::find(said.json, {"status", "allocations"}), nullptr) << "its status is written with it";
}

TEST(Machines, DevicesThatCannotBeAreRefused) {
    TestFront t;
    expect_refused(t.ask("POST", kDevices, devices("n1", R"({"type":"gpu","minor":-1})")),
                   "spec.devices[0].minor: Invalid value: -1: must be greater than or equal to 0");
    expect_refused(t.ask("POST", kDevices, devices("n1", R"({"type":"gpu","minor":1},{"type":"gpu","minor":1})")),
                   "spec.devices[1].minor: Duplicate value: 1");
    expect_refused(t.ask("POST", kDevices, devices("n1", R"({"type":"gpu","minor":1,"resources":{"a/b":"-5"}})")),
                   R"(spec.devices[0].resources[a/b]: Invalid value: "-5": must be greater than or equal to 0)");
    EXPECT_EQ(t.ask("POST", kDevices, devices("n1", R"({"type":"gpu","minor":1},{"type":"rdma","minor":1})")).code,
              201);
    expect_refused(t.ask("PATCH", kDevices + "/n1", R"({"spec":{"devices":[{"type":"gpu","minor":-1}]}})", kMerge),
                   "must be greater than or equal to 0");
}

}  // namespace
}  // namespace berth::api
