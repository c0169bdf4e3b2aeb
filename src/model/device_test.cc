#include "model/device.h"

#include <gtest/gtest.h>

#include "model/device_allocated.h"
#include "model/device_request.h"

namespace berth::model {
namespace {

Device device_of(std::string_view text) {
    base::JsonParser parser;
    auto read = read_device(*parser.parse(text));
    EXPECT_TRUE(read.ok());
    return std::move(*read);
}

Resources requests_of(std::initializer_list<std::pair<std::string_view, int64_t>> given) {
    Resources out{{kPods, 1}};
    for (const auto& [name, amount] : given) out.set(*intern_resource(name), amount);
    return out;
}

constexpr int64_t kGi = int64_t{1} << 30;

constexpr std::string_view kTwo = R"({"metadata":{"name":"n1"},"spec":{"devices":[
  {"type":"rdma","minor":0,"id":"0000:1f:00.0","health":true,"resources":{"koordinator.sh/rdma":"100"},
   "topology":{"socketID":0,"nodeID":0,"pcieID":"p0","busID":"0000:1f:00.0"},
   "vfGroups":[{"labels":{"type":"general"},"vfs":[{"minor":1,"busID":"0000:1f:00.3"},{"minor":0,"busID":"0000:1f:00.2"}]}]},
  {"type":"gpu","minor":1,"id":"GPU-b","health":false,"resources":{"koordinator.sh/gpu-core":"100"}},
  {"type":"gpu","minor":0,"id":"GPU-a","health":true,"labels":{"model":"A100"},
   "resources":{"koordinator.sh/gpu-core":"100","koordinator.sh/gpu-memory":"80Gi","koordinator.sh/gpu-memory-ratio":"100"},
   "topology":{"socketID":0,"nodeID":0,"pcieID":"p0","busID":"0000:3b:00.0"}}]}})";

TEST(Device, IsReadInOrderAndAnUnhealthyOneHasNothing) {
    const Device device = device_of(kTwo);
    EXPECT_TRUE(device.faults.empty());
    ASSERT_EQ(device.units.size(), 3u);
    const DeviceUnit& gpu = device.units[0];
    EXPECT_EQ(gpu.id, "GPU-a");
    EXPECT_EQ(gpu.total, (DeviceAmounts{100, 100, 80 * kGi}));
    EXPECT_EQ(gpu.pcie, "p0");
    EXPECT_TRUE(device.units[1].total.none());
    EXPECT_EQ(device.find(DeviceType::Rdma, 0)->functions.front().functions.front().bus, "0000:1f:00.2");
    EXPECT_EQ(device.find(DeviceType::Rdma, 1), nullptr);
    const Resources sums = device.sums();
    EXPECT_EQ(sums.get(device_resources().gpu), 100);
    EXPECT_EQ(sums.get(device_resources().memory), 80 * kGi);
    EXPECT_EQ(sums.get(device_resources().rdma), 100);
    EXPECT_FALSE(sums.has(device_resources().fpga));
}

TEST(Device, WhatCannotBeIsNamedAndGivenToNobody) {
    struct Case {
        std::string_view devices;
        std::string_view fault;
        size_t left;
    };
    const Case cases[] = {
        {R"([{"type":"gpu","minor":0,"health":true,"resources":{"koordinator.sh/gpu-core":"-5"}}])", "-5", 0},
        {R"([{"type":"gpu","minor":0,"health":true,"resources":{"koordinator.sh/gpu-core":"101"}}])",
         "spec.devices[0].resources: koordinator.sh/gpu-core must be from 0 to 100, but is 101", 0},
        {R"([{"type":"gpu","minor":0,"health":true,"resources":{"koordinator.sh/gpu-memory":"9E"}},
             {"type":"gpu","minor":1,"health":true}])",
         "koordinator.sh/gpu-memory must be from 0 to", 1},
        {R"([{"type":"tpu","minor":0,"health":true}])", "must be gpu, rdma or fpga, but is \"tpu\"", 0},
        {R"([{"type":"gpu","health":true}])", "spec.devices[0].minor: is required", 0},
        {R"([{"type":"gpu","minor":3,"health":true},{"type":"gpu","minor":3,"health":true},
             {"type":"rdma","minor":3,"health":true}])",
         "spec.devices: two of type gpu have the minor 3", 1},
        {R"("all")", "spec.devices", 0},
    };
    for (const Case& c : cases) {
        const Device device =
            device_of(R"({"metadata":{"name":"n1"},"spec":{"devices":)" + std::string(c.devices) + "}}");
        ASSERT_EQ(device.faults.size(), 1u) << c.devices;
        EXPECT_NE(device.faults[0].find(c.fault), std::string::npos) << device.faults[0];
        EXPECT_EQ(device.units.size(), c.left) << c.devices;
    }
}

TEST(Device, PartitionsAreReadByTheirSize) {
    const Device device =
        device_of(R"({"metadata":{"name":"n1","labels":{"node.koordinator.sh/gpu-partition-policy":"Honor"},
        "annotations":{"scheduling.koordinator.sh/gpu-partitions":
        "{\"2\":[{\"minors\":[1,0],\"allocationScore\":7,\"ringBusBandwidth\":\"2Gi\"}],\"1\":[{\"minors\":[0]}]}"}}})");
    EXPECT_TRUE(device.faults.empty());
    EXPECT_TRUE(device.partitions_only);
    const GpuPartition& two = device.partitions.at(2).front();
    EXPECT_EQ(two.minors, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(two.score, 7);
    EXPECT_EQ(two.bandwidth, 2 * kGi);
    const Device broken = device_of(R"({"metadata":{"name":"n1","annotations":{
        "scheduling.koordinator.sh/gpu-partitions":"{\"2\":[{\"minors\":[1]}]}"}}})");
    ASSERT_EQ(broken.faults.size(), 1u);
    EXPECT_NE(broken.faults[0].find("must be 2 different GPUs"), std::string::npos) << broken.faults[0];
}

TEST(DeviceRequest, AnnotationsSayWhichAndHow) {
    const Labels notes{{std::string(kDeviceHint),
                        R"({"gpu":{"selector":{"matchLabels":{"model":"A100"}},"requiredTopologyScope":"PCIe"},
                            "rdma":{"vfSelector":{},"allocateStrategy":"ApplyForAll"}})"},
                       {std::string(kDeviceJoint), R"({"deviceTypes":["rdma","gpu"],"requiredScope":"SamePCIe"})"}};
    const auto demand =
        read_device_demand(requests_of({{"koordinator.sh/gpu", 200}, {"koordinator.sh/rdma", 1}}), notes);
    ASSERT_TRUE(demand.ok()) << demand.error().message;
    ASSERT_EQ(demand->types.size(), 2u);
    EXPECT_EQ(demand->types[0].type, DeviceType::Rdma) << "the first of deviceTypes is chosen first";
    EXPECT_TRUE(demand->types[0].of_all);
    EXPECT_TRUE(demand->types[0].functions.has_value());
    EXPECT_EQ(demand->types[1].scope, DeviceScope::Pcie);
    EXPECT_EQ(demand->types[1].count, 2);
    EXPECT_TRUE(demand->same_pcie);
    EXPECT_FALSE(demand->vendors_only);
}

TEST(DeviceRequest, RequestsAsCountAreDevices) {
    const auto asked = [](std::string_view hint) {
        return *read_device_demand(requests_of({{"koordinator.sh/rdma", 2}}),
                                   {{std::string(kDeviceHint), std::string(hint)}});
    };
    EXPECT_EQ(asked(R"({"rdma":{"allocateStrategy":"RequestsAsCount"}})").types[0].count, 2);
    EXPECT_EQ(asked(R"({"rdma":{"allocateStrategy":"RequestsAsCount"}})").types[0].core, 1);
    EXPECT_EQ(asked(R"({"rdma":{"allocateStrategy":"RequestsAsCount","exclusivePolicy":"DeviceLevel"}})").types[0].core,
              100);
}

TEST(DeviceRequest, ABrokenAnnotationIsQuoted) {
    const auto fault = [](std::string_view key, std::string_view text) {
        const auto read =
            read_device_demand(requests_of({{"koordinator.sh/gpu", 100}}), {{std::string(key), std::string(text)}});
        return read.ok() ? std::string() : read.error().message;
    };
    EXPECT_NE(fault(kDeviceHint, "{").find(kDeviceHint), std::string::npos);
    EXPECT_NE(fault(kDeviceHint, R"({"gpu":{"exclusivePolicy":"Sole"}})").find("is \"Sole\""), std::string::npos);
    EXPECT_NE(fault(kDeviceHint, R"({"gpu":{"allocateStrategy":"RequestsAsCount"}})").find("not for gpu"),
              std::string::npos);
    EXPECT_NE(fault(kDeviceJoint, R"({"requiredScope":"SameRack"})").find("SameRack"), std::string::npos);
    EXPECT_NE(fault(kGpuPartitionSpec, R"({"ringBusBandwidth":"wide"})").find("must be a quantity"), std::string::npos);
    EXPECT_TRUE(read_device_demand(requests_of({}), {{std::string(kDeviceHint), "{"}}).ok())
        << "who asks for no device is not asked how";
}

TEST(DeviceRequest, OfADevice) {
    const Device device = device_of(kTwo);
    DevicesWanted wanted;
    wanted.ratio = 30;
    EXPECT_EQ(wanted.of(device.units[0]), (DeviceAmounts{0, 30, 24 * kGi}));
    wanted = {};
    wanted.memory = 20 * kGi;
    EXPECT_EQ(wanted.of(device.units[0]), (DeviceAmounts{0, 25, 20 * kGi}));
    EXPECT_EQ(wanted.of(device.units[1]), std::nullopt) << "it has no memory";
}

TEST(DeviceRecord, IsWrittenAndReadAgain) {
    const DeviceRecord record{
        {DeviceType::Gpu, 0, {50, 25, 20 * kGi}, "GPU-a", {}},
        {DeviceType::Rdma, 3, {1, 0, 0}, "0000:1f:00.0", {{1, "0000:1f:00.3"}}},
    };
    const std::string text = device_record_text(record);
    EXPECT_EQ(
        text,
        R"({"gpu":[{"minor":0,"id":"GPU-a","resources":{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory":"20Gi","koordinator.sh/gpu-memory-ratio":"25"}}],)"
        R"("rdma":[{"minor":3,"id":"0000:1f:00.0","resources":{"koordinator.sh/rdma":"1"},"extension":{"vfs":[{"minor":1,"busID":"0000:1f:00.3"}]}}]})");
    const auto read = read_device_record({{std::string(kDeviceAllocated), text}});
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, record);
    const auto numbers = read_device_record(
        {{std::string(kDeviceAllocated), R"({"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":50}}]})"}});
    ASSERT_TRUE(numbers.ok()) << numbers.error().message;
    EXPECT_EQ(numbers->front().amounts.core, 50);
}

TEST(DeviceRecord, AForgedOneIsRefused) {
    for (
        const std::string_view text :
        {"[]", "{", R"({"gpu":[{"minor":0}]})", R"({"gpu":[{"minor":-1,"resources":{"koordinator.sh/gpu-core":"1"}}]})",
         R"({"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"101"}}]})",
         R"({"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"-1"}}]})",
         R"({"tpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"1"}}]})",
         R"({"gpu":[{"resources":{"koordinator.sh/gpu-core":"1"}}]})",
         R"({"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"1"}},{"minor":0,"resources":{"koordinator.sh/gpu-core":"1"}}]})"}) {
        const auto read = read_device_record({{std::string(kDeviceAllocated), std::string(text)}});
        ASSERT_FALSE(read.ok()) << text;
        EXPECT_NE(read.error().message.find(kDeviceAllocated), std::string::npos) << read.error().message;
    }
}

}  // namespace
}  // namespace berth::model
