#include "sched/device_choice.h"

#include <gtest/gtest.h>

namespace berth::sched {
namespace {

using model::DeviceAmounts;
using model::DeviceShare;
using model::DeviceType;
using model::DeviceUnit;

constexpr int64_t kGi = int64_t{1} << 30;

// Two NUMA nodes, two switches each; on every switch two GPUs of 80Gi and one rdma device with two virtual functions.
std::shared_ptr<model::Device> machine() {
    auto device = std::make_shared<model::Device>();
    device->meta.name = "n1";
    for (int32_t minor = 0; minor < 8; ++minor) {
        DeviceUnit unit;
        unit.minor = minor;
        unit.id = "GPU-" + std::to_string(minor);
        unit.healthy = true;
        unit.total = {100, 100, 80 * kGi};
        unit.numa = minor / 4;
        unit.pcie = "p" + std::to_string(minor / 2);
        unit.labels = model::Labels{{"half", minor < 4 ? "low" : "high"}};
        device->units.push_back(unit);
    }
    for (int32_t minor = 0; minor < 4; ++minor) {
        DeviceUnit unit;
        unit.type = DeviceType::Rdma;
        unit.minor = minor;
        unit.healthy = true;
        unit.total = {100, 0, 0};
        unit.numa = minor / 2;
        unit.pcie = "p" + std::to_string(minor);
        const std::string bus = "0000:0" + std::to_string(minor);
        unit.functions = {{model::Labels{{"type", "fast"}}, {{0, bus + ".2"}, {1, bus + ".3"}}}};
        device->units.push_back(unit);
    }
    return device;
}

class DeviceChoices : public ::testing::Test {
protected:
    void SetUp() override { see(machine()); }

    void see(std::shared_ptr<const model::Device> device) {
        devices_.put(std::move(device));
        devices_.see(0, "n1");
    }
    // Somebody has these.
    void take(model::DeviceRecord record, bool reservation = false, uint32_t index = 100) {
        ledger::NodeDevices::Member holder{reservation, index, nullptr, false, {}, {}};
        holder.record = std::make_shared<const model::DeviceRecord>(std::move(record));
        devices_.enter(0, std::move(holder));
    }
    static DeviceShare gpu(int32_t minor, int64_t percent) {
        return {DeviceType::Gpu, minor, {percent, percent, percent * 80 * kGi / 100}, "", {}};
    }
    static model::DeviceDemand demand(std::initializer_list<std::pair<std::string, int64_t>> requests,
                                      const model::Labels& notes = {}) {
        model::Resources amounts;
        for (const auto& [name, amount] : requests) amounts.set(*model::intern_resource(name), amount);
        auto read = model::read_device_demand(amounts, notes);
        EXPECT_TRUE(read.ok()) << read.error().message;
        return read.ok() ? *read : model::DeviceDemand();
    }
    static model::Labels hint(std::string_view text) { return {{std::string(model::kDeviceHint), std::string(text)}}; }
    static model::Labels joint(std::string_view text) {
        return {{std::string(model::kDeviceJoint), std::string(text)}};
    }
    DeviceChoice choose(const model::DeviceDemand& wanted, const DeviceSources& sources = {},
                        DeviceOrder order = DeviceOrder::LeastAllocated) {
        const DeviceChoice choice = choose_devices(wanted, devices_.at(0), sources, order);
        if (choice.refusal.empty()) {
            EXPECT_EQ(check_devices(wanted, choice.record, devices_.at(0), sources), "");
        }
        return choice;
    }
    // "gpu0 gpu1 rdma0", or why not.
    std::string chosen(const model::DeviceDemand& wanted, const DeviceSources& sources = {},
                       DeviceOrder order = DeviceOrder::LeastAllocated) {
        const DeviceChoice choice = choose(wanted, sources, order);
        if (!choice.refusal.empty()) return choice.refusal;
        std::string out;
        for (const auto& share : choice.record) {
            out += (out.empty() ? "" : " ") + std::string(name_of(share.type)) + std::to_string(share.minor);
        }
        return out;
    }

    ledger::Devices devices_;
};

TEST_F(DeviceChoices, SeveralGoWhereTheyAreNear) {
    EXPECT_EQ(chosen(demand({{"nvidia.com/gpu", 2}})), "gpu0 gpu1");
    take({gpu(0, 100)});
    EXPECT_EQ(chosen(demand({{"nvidia.com/gpu", 2}})), "gpu2 gpu3") << "one switch has both";
    EXPECT_EQ(chosen(demand({{"nvidia.com/gpu", 3}})), "gpu1 gpu2 gpu3") << "NUMA node 0 has just enough";
    EXPECT_EQ(chosen(demand({{"nvidia.com/gpu", 8}})), "Insufficient gpu devices");
}

TEST_F(DeviceChoices, ASharesGpuIsChosenByTheOrder) {
    take({gpu(0, 40)});
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 50}})), "gpu1") << "the least allocated, then the smallest minor";
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 50}}), {}, DeviceOrder::MostAllocated), "gpu0");
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 70}}), {}, DeviceOrder::MostAllocated), "gpu1")
        << "60 are left of 0";
}

TEST_F(DeviceChoices, EveryAmountMustBeThere) {
    for (int32_t minor = 0; minor < 8; ++minor)
        take({{DeviceType::Gpu, minor, {90, 10, 8 * kGi}, "", {}}}, false, 100u + minor);
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 50}})), "Insufficient gpu devices")
        << "there are 10 percent of cores";
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu-memory", 72 * kGi}})), "gpu0");
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu-memory", 73 * kGi}})), "Insufficient gpu devices");
}

TEST_F(DeviceChoices, AllOnOneSwitchOrNone) {
    const auto wanted = demand({{"koordinator.sh/gpu", 200}}, hint(R"({"gpu":{"requiredTopologyScope":"PCIe"}})"));
    for (const int32_t minor : {0, 2, 4, 6, 5, 3}) take({gpu(minor, 100)}, false, 200u + minor);
    EXPECT_EQ(chosen(wanted), "node(s) had 2 of 8 GPUs free, but not on one PCIe switch");
    devices_.leave(0, false, 206);
    EXPECT_EQ(chosen(wanted), "gpu6 gpu7");
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 300}}, hint(R"({"gpu":{"requiredTopologyScope":"NUMANode"}})"))),
              "node(s) had 3 of 8 GPUs free, but not on one NUMA node");
}

TEST_F(DeviceChoices, SelectorsAndHealth) {
    EXPECT_EQ(
        chosen(demand({{"koordinator.sh/gpu", 100}}, hint(R"({"gpu":{"selector":{"matchLabels":{"half":"high"}}}})"))),
        "gpu4");
    auto ill = machine();
    ill->meta.revision = 2;
    ill->units[4].healthy = false;
    see(ill);
    EXPECT_EQ(
        chosen(demand({{"koordinator.sh/gpu", 100}}, hint(R"({"gpu":{"selector":{"matchLabels":{"half":"high"}}}})"))),
        "gpu5");
}

TEST_F(DeviceChoices, ExclusiveOnesKeepOthersOut) {
    take({gpu(0, 10)});
    const auto device_level =
        demand({{"koordinator.sh/gpu", 50}}, hint(R"({"gpu":{"exclusivePolicy":"DeviceLevel"}})"));
    const DeviceChoice whole = choose(device_level);
    ASSERT_EQ(whole.record.size(), 1u);
    EXPECT_EQ(whole.record.front().minor, 1);
    EXPECT_EQ(whole.record.front().amounts.core, 100) << "so nobody else gets a part of it";
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 50}}, hint(R"({"gpu":{"exclusivePolicy":"PCIeLevel"}})"))), "gpu2")
        << "somebody has a GPU on the first switch";
}

TEST_F(DeviceChoices, VirtualFunctions) {
    const auto wanted =
        demand({{"koordinator.sh/rdma", 1}}, hint(R"({"rdma":{"vfSelector":{"matchLabels":{"type":"fast"}}}})"));
    const DeviceChoice first = choose(wanted);
    ASSERT_EQ(first.record.size(), 1u);
    EXPECT_EQ(first.record[0].functions, (std::vector<model::VirtualFunction>{{0, "0000:00.2"}}));
    take(first.record);
    for (int32_t minor = 1; minor < 4; ++minor)
        take({{DeviceType::Rdma, minor, {100, 0, 0}, "", {}}}, false, 300u + minor);
    const DeviceChoice second = choose(wanted);
    ASSERT_EQ(second.record.size(), 1u) << second.refusal;
    EXPECT_EQ(second.record[0].functions, (std::vector<model::VirtualFunction>{{1, "0000:00.3"}}));
    take(second.record, false, 101);
    EXPECT_EQ(chosen(wanted), "Insufficient rdma devices") << "there is amount left, but no function";
    EXPECT_EQ(chosen(demand({{"koordinator.sh/rdma", 1}})), "rdma0");
    EXPECT_EQ(chosen(demand({{"koordinator.sh/rdma", 1}},
                            hint(R"({"rdma":{"vfSelector":{"matchLabels":{"type":"slow"}}}})"))),
              "Insufficient rdma devices");
}

TEST_F(DeviceChoices, ForAllMeansEveryOne) {
    const auto all = demand({{"koordinator.sh/rdma", 10}}, hint(R"({"rdma":{"allocateStrategy":"ApplyForAll"}})"));
    EXPECT_EQ(chosen(all), "rdma0 rdma1 rdma2 rdma3");
    take({{DeviceType::Rdma, 2, {95, 0, 0}, "", {}}});
    EXPECT_EQ(chosen(all), "Insufficient rdma devices");
}

TEST_F(DeviceChoices, JointOnesShareSwitches) {
    const std::string same = R"({"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"})";
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 200}, {"koordinator.sh/rdma", 1}}, joint(same))),
              "gpu0 gpu1 rdma0");
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 400}, {"koordinator.sh/rdma", 1}}, joint(same))),
              "gpu0 gpu1 gpu2 gpu3 rdma0 rdma1")
        << "one of each switch, though one was asked for";
    take({{DeviceType::Rdma, 0, {100, 0, 0}, "", {}}});
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 100}, {"koordinator.sh/rdma", 1}}, joint(same))), "gpu2 rdma1");
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 800}, {"koordinator.sh/rdma", 1}}, joint(same))),
              "node(s) Device Joint-Allocate rules violation");
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 100}, {"koordinator.sh/rdma", 1}},
                            joint(R"({"deviceTypes":["gpu","rdma"]})"))),
              "gpu0 rdma1")
        << "near if it can be, and else elsewhere";
}

TEST_F(DeviceChoices, PartitionsOfTheTable) {
    auto device = machine();
    device->meta.revision = 2;
    device->partitions[2] = {{{0, 1}, 5, 100}, {{2, 3}, 5, 100}, {{4, 5}, 7, 100}, {{0, 4}, 1, 800}};
    device->partitions[4] = {{{4, 5, 6, 7}, 1, 100}};
    see(device);
    const auto two = [&](std::string_view spec) {
        return demand({{"nvidia.com/gpu", 2}}, {{std::string(model::kGpuPartitionSpec), std::string(spec)}});
    };
    EXPECT_EQ(chosen(two("{}")), "gpu4 gpu5") << "the highest score, though it breaks the four";
    EXPECT_EQ(chosen(two(R"({"ringBusBandwidth":"500"})")), "gpu0 gpu4");
    EXPECT_EQ(chosen(demand({{"nvidia.com/gpu", 3}})), "gpu0 gpu1 gpu2")
        << "the table has none of three, and does not rule";
    take({gpu(4, 100)});
    EXPECT_EQ(chosen(two(R"({"allocatePolicy":"Restricted"})")), "node(s) no GPU partition of the size is free");
    EXPECT_EQ(chosen(two(R"({"allocatePolicy":"BestEffort"})")), "gpu0 gpu1");
    auto honors = std::make_shared<model::Device>(*device);
    honors->meta.revision = 3;
    honors->partitions_only = true;
    see(honors);
    EXPECT_EQ(chosen(demand({{"nvidia.com/gpu", 3}})), "node(s) no GPU partition of the size is free");
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 50}})), "gpu0") << "shares go by no partition";
}

// Of two that score the same the one goes that leaves the larger partition whole.
TEST_F(DeviceChoices, PartitionsArePacked) {
    auto device = machine();
    device->meta.revision = 2;
    device->partitions[2] = {{{0, 1}, 1, 0}, {{4, 5}, 1, 0}};
    device->partitions[4] = {{{0, 1, 2, 3}, 1, 0}, {{4, 5, 6, 7}, 1, 0}};
    see(device);
    take({gpu(7, 100)});
    EXPECT_EQ(chosen(demand({{"nvidia.com/gpu", 2}})), "gpu4 gpu5");
}

TEST_F(DeviceChoices, OwnersTakeWhatIsReservedFirst) {
    take({gpu(5, 100)}, true, 7);
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 50}}), {{7}, {}}), "gpu5");
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 50}})), "gpu0") << "nobody else";
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 200}}), {{7}, {}}), "gpu4 gpu5") << "and one beside it";
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 200}}), {{7}, {true, true, true}}), "Insufficient gpu devices")
        << "Restricted: only what is reserved";
    EXPECT_EQ(chosen(demand({{"koordinator.sh/gpu", 100}, {"koordinator.sh/rdma", 1}}), {{7}, {true, false, false}}),
              "gpu5 rdma0")
        << "it holds no rdma, so that is had of the node";
}

TEST_F(DeviceChoices, WithoutADevice) {
    EXPECT_EQ(choose_devices(demand({{"nvidia.com/gpu", 1}}), nullptr, {}, {}).refusal, "")
        << "whoever manages them without a Device gives them himself";
    EXPECT_EQ(choose_devices(demand({{"koordinator.sh/gpu", 100}}), nullptr, {}, {}).refusal, "node(s) missing Device");
    devices_.remove("n1", "");
    take({gpu(0, 100)});
    devices_.see(0, "n1");
    EXPECT_EQ(chosen(demand({{"nvidia.com/gpu", 1}})), "node(s) missing Device") << "somebody has some of them by name";
}

TEST_F(DeviceChoices, ForeignRecordsAreChecked) {
    const auto wanted = demand({{"koordinator.sh/gpu", 50}});
    const auto wrong = [&](model::DeviceRecord record, const DeviceSources& sources = {}) {
        return check_devices(wanted, record, devices_.at(0), sources);
    };
    EXPECT_EQ(wrong({gpu(3, 50)}), "") << "it need not be the one that we would choose";
    EXPECT_EQ(wrong({}), "its record names 0 of 1 gpu devices");
    EXPECT_EQ(wrong({gpu(9, 50)}), "there is no gpu 9");
    EXPECT_EQ(wrong({gpu(3, 50), gpu(4, 50)}), "its record names 2 of 1 gpu devices");
    EXPECT_EQ(wrong({gpu(3, 10)}), "the record of gpu 3 is not what the pod asks for");
    EXPECT_EQ(wrong({gpu(3, 50), {DeviceType::Rdma, 0, {1, 0, 0}, "", {}}}), "it asks for no rdma device");
    take({gpu(3, 60)}, true, 7);
    EXPECT_EQ(wrong({gpu(3, 50)}), "gpu 3 has too little left for it");
    EXPECT_EQ(wrong({gpu(3, 50)}, {{7}, {}}), "");
    EXPECT_EQ(wrong({gpu(2, 50)}, {{7}, {true, true, true}}), "gpu 2 has too little left for it")
        << "of the reservation";
}

}  // namespace
}  // namespace berth::sched
