#include "ledger/devices.h"

#include <gtest/gtest.h>

namespace berth::ledger {
namespace {

using Fault = NodeDevices::Fault;

std::shared_ptr<const model::Device> gpus(int32_t count, uint64_t revision = 1) {
    auto device = std::make_shared<model::Device>();
    device->meta.name = "n1";
    device->meta.uid = "u1";
    device->meta.revision = revision;
    for (int32_t minor = 0; minor < count; ++minor) {
        model::DeviceUnit unit;
        unit.minor = minor;
        unit.healthy = true;
        unit.total = {100, 100, 1000};
        unit.functions = {{{}, {{0, "b0"}, {1, "b1"}}}};
        device->units.push_back(unit);
    }
    return device;
}

NodeDevices::Member member(bool reservation, uint32_t index, model::DeviceRecord record,
                           std::vector<ReservationIndex> from = {}) {
    NodeDevices::Member out{reservation, index, nullptr, false, {}, std::move(from)};
    out.record = std::make_shared<const model::DeviceRecord>(std::move(record));
    return out;
}

model::DeviceShare share(int32_t minor, int64_t percent, std::vector<model::VirtualFunction> functions = {}) {
    return {DeviceType::Gpu, minor, {percent, percent, percent * 10}, "", std::move(functions)};
}

Fault fault_of(const Devices& devices) {
    return devices.at(0)->closed[0].fault;
}

TEST(Devices, WhatOneHasIsNotFree) {
    Devices devices;
    devices.put(gpus(2));
    devices.see(0, "n1");
    devices.enter(0, member(false, 1, {share(0, 40)}));
    EXPECT_EQ(devices.at(0)->free[0], (DeviceAmounts{60, 60, 600}));
    EXPECT_EQ(devices.at(0)->free[1], (DeviceAmounts{100, 100, 1000}));
    EXPECT_EQ(devices.digest(0).whole, 1);
    EXPECT_TRUE(devices.digest(0).one_has_most);
    devices.leave(0, false, 1);
    EXPECT_EQ(devices.digest(0).whole, 2);
    EXPECT_EQ(devices.digest(7).state, DeviceDigest::State::Nothing);
}

// A GPU is reserved; owners of 60 and 30 draw from it: 10 are left of it, and nothing of the device.
TEST(Devices, OwnersTakeWhatIsReserved) {
    Devices devices;
    devices.put(gpus(2));
    devices.see(0, "n1");
    devices.enter(0, member(false, 1, {share(0, 60)}, {5}));
    devices.enter(0, member(true, 5, {share(0, 100)}));
    devices.enter(0, member(false, 2, {share(0, 30)}, {5}));
    const NodeDevices& node = *devices.at(0);
    EXPECT_TRUE(node.free[0].none()) << "whoever came first";
    EXPECT_EQ(node.remaining(5, 0), (DeviceAmounts{10, 10, 100}));
    EXPECT_TRUE(node.remaining(5, 1).none());
    EXPECT_TRUE(node.holds(5, DeviceType::Gpu));
    EXPECT_FALSE(node.holds(5, DeviceType::Rdma));
    EXPECT_EQ(fault_of(devices), Fault::None);
    devices.leave(0, true, 5);
    EXPECT_EQ(devices.at(0)->free[0], (DeviceAmounts{10, 10, 100})) << "the owners stay";
}

TEST(Devices, AnOwnersOtherDevicesAreItsOwn) {
    Devices devices;
    devices.put(gpus(2));
    devices.see(0, "n1");
    devices.enter(0, member(true, 5, {share(0, 100)}));
    devices.enter(0, member(false, 1, {share(0, 100), share(1, 100)}, {5}));
    EXPECT_TRUE(devices.at(0)->free[0].none());
    EXPECT_TRUE(devices.at(0)->free[1].none());
    EXPECT_EQ(fault_of(devices), Fault::None);
}

// 40 and 40 of a GPU are reserved. Who draws 60 from both takes all of the first and 20 of the second; who has others
// to pay for it is counted after who has not, so it does not matter who is told of first.
TEST(Devices, SeveralReservationsPayForOneDevice) {
    for (const bool joint_first : {true, false}) {
        Devices devices;
        devices.put(gpus(1));
        devices.see(0, "n1");
        devices.enter(0, member(true, 5, {share(0, 40)}));
        devices.enter(0, member(true, 6, {share(0, 40)}));
        devices.enter(0, member(false, 1, {share(0, 60)}, {5, 6}));
        EXPECT_EQ(devices.at(0)->remaining(5, 0), (DeviceAmounts{0, 0, 0}));
        EXPECT_EQ(devices.at(0)->remaining(6, 0), (DeviceAmounts{20, 20, 200}));
        EXPECT_EQ(devices.at(0)->free[0], (DeviceAmounts{20, 20, 200}));
        if (!joint_first) devices.leave(0, false, 1);
        devices.enter(0, member(false, 2, {share(0, 40)}, {5}));
        if (!joint_first) devices.enter(0, member(false, 1, {share(0, 60)}, {5, 6}));
        EXPECT_EQ(fault_of(devices), Fault::None) << "40 of the first, 40 of the second, 20 of nobody's";
        EXPECT_TRUE(devices.at(0)->remaining(6, 0).none());
        EXPECT_TRUE(devices.at(0)->free[0].none());
        devices.leave(0, true, 5);
        EXPECT_EQ(fault_of(devices), Fault::None);
        EXPECT_TRUE(devices.at(0)->free[0].none());
    }
}

TEST(Devices, AVirtualFunctionHasOneHolder) {
    Devices devices;
    devices.put(gpus(1));
    devices.see(0, "n1");
    devices.enter(0, member(true, 5, {share(0, 10, {{0, "b0"}})}));
    EXPECT_FALSE(devices.at(0)->function_free(0, {0, "b0"}, {}));
    EXPECT_TRUE(devices.at(0)->function_free(0, {0, "b0"}, {5})) << "it is the owner's to take";
    EXPECT_TRUE(devices.at(0)->function_free(0, {1, "b1"}, {}));
    devices.enter(0, member(false, 1, {share(0, 10, {{0, "b0"}})}, {5}));
    EXPECT_FALSE(devices.at(0)->function_free(0, {0, "b0"}, {5})) << "an owner has taken it";
}

TEST(Devices, WhatNobodyCanAccountForClosesTheType) {
    Devices devices;
    devices.put(gpus(2));
    devices.see(0, "n1");
    const auto closes = [&](NodeDevices::Member with) {
        devices.enter(0, std::move(with));
        const Fault fault = fault_of(devices);
        EXPECT_EQ(devices.digest(0).state == DeviceDigest::State::Closed, fault != Fault::None);
        devices.leave(0, false, 9);
        EXPECT_EQ(fault_of(devices), Fault::None) << "it opens again when whoever it was is gone";
        return fault;
    };
    EXPECT_EQ(closes(member(false, 9, {share(7, 10)})), Fault::Vanished);
    NodeDevices::Member unreadable = member(false, 9, {});
    unreadable.unreadable = true;
    EXPECT_EQ(closes(unreadable), Fault::Unreadable);
    NodeDevices::Member unsaid = member(false, 9, {});
    unsaid.asks[0] = true;
    EXPECT_EQ(closes(unsaid), Fault::Unsaid);
    devices.enter(0, member(false, 1, {share(0, 60)}));
    EXPECT_EQ(closes(member(false, 9, {share(0, 60)})), Fault::Overfull);
    EXPECT_EQ(closes(member(false, 9, {share(0, 40)})), Fault::None);
}

TEST(Devices, ADeviceThatIsIllIsOnlyClosedItself) {
    Devices devices;
    auto ill = std::make_shared<model::Device>(*gpus(2));
    ill->units[0].healthy = false;
    ill->units[0].total = {};
    devices.put(ill);
    devices.see(0, "n1");
    devices.enter(0, member(false, 1, {share(0, 60)}));
    EXPECT_EQ(fault_of(devices), Fault::None);
    EXPECT_TRUE(devices.at(0)->free[0].none());
    EXPECT_EQ(devices.digest(0).whole, 1);
}

TEST(Devices, EventsComeInAnyOrder) {
    Devices devices;
    devices.enter(0, member(false, 1, {share(0, 60)}));
    EXPECT_EQ(fault_of(devices), Fault::Vanished) << "the Device is not known yet";
    EXPECT_TRUE(devices.put(gpus(1, 2)));
    EXPECT_FALSE(devices.put(gpus(2, 1))) << "an older state";
    devices.see(0, "n1");
    EXPECT_EQ(fault_of(devices), Fault::None);
    EXPECT_EQ(devices.at(0)->unit_count(), 1u);
    EXPECT_FALSE(devices.remove("n1", "another"));
    EXPECT_TRUE(devices.remove("n1", "u1"));
    devices.see(0, "n1");
    EXPECT_EQ(fault_of(devices), Fault::Vanished);
    devices.leave(0, false, 1);
    EXPECT_EQ(devices.at(0), nullptr);
}

}  // namespace
}  // namespace berth::ledger
