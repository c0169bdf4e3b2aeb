#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "ledger/ids.h"
#include "model/device.h"
#include "model/device_allocated.h"

namespace berth::ledger {

using model::DeviceAmounts;
using model::DeviceType;

// Who has which devices of a node, and how much of each.
//   used = sum over pods + sum over reservations of what they have left
// of each device and amount. Of a device that a pod has, every reservation that it draws from and that holds a part of
// it gives what it has left, in the pod's order, until all is paid. E.g. two hold 40 each, the pod has 60: 0 and 20 are
// left. Those with fewer to pay for them go first, so that the order of events does not matter. Computed from the
// members whenever one of them comes or goes, never adjusted.
struct NodeDevices {
    struct Member {
        bool reservation = false;
        uint32_t index = 0;                                 // PodIndex or ReservationIndex
        std::shared_ptr<const model::DeviceRecord> record;  // nullptr: it has none
        bool unreadable = false;                            // nobody knows what it has
        std::array<bool, model::kDeviceTypes> asks{};       // for devices of the type
        std::vector<ReservationIndex> from = {};            // that pay for it
        std::string order = {};                             // its uid, where several pay
        bool named() const { return record || unreadable; }
    };
    enum class Fault : uint8_t {
        None,
        Unreadable,  // a record
        Unsaid,      // somebody has devices and no record says which
        Vanished,    // a record names a device that the node does not have
        Overfull,    // records name more of a device than there is
    };
    // A type with a fault is given to nobody here.
    struct Closed {
        Fault fault = Fault::None;
        uint32_t member = 0;
        int32_t minor = -1;
    };

    std::shared_ptr<const model::Device> object;  // nullptr: not known
    bool honors_partitions = false;               // the Node itself says so
    std::vector<Member> members;

    bool by_name = false;  // there is a Device, or somebody has devices by their names
    std::array<Closed, model::kDeviceTypes> closed{};
    std::vector<DeviceAmounts> used;  // beside object->units
    std::vector<DeviceAmounts> free;  // of those that are not healthy nothing

    void recompute();
    // Whole GPUs go by partitions, and not otherwise.
    bool partitions_only() const { return honors_partitions || (object && object->partitions_only); }
    size_t unit_count() const { return object ? object->units.size() : 0; }
    const model::DeviceUnit& unit(size_t place) const { return object->units[place]; }
    // What of a reservation's part of a device its owners have not.
    DeviceAmounts remaining(ReservationIndex reservation, size_t place) const;
    // Whether the reservation holds devices of the type, and whether any of these is left.
    bool holds(ReservationIndex reservation, DeviceType type) const;
    bool has_left(ReservationIndex reservation, DeviceType type) const;
    // Whether nobody has the function but, perhaps, one of these and none of their owners.
    bool function_free(size_t place, const model::VirtualFunction& function,
                       const std::vector<ReservationIndex>& but) const;

private:
    struct Held {
        ReservationIndex reservation;
        size_t place;
        DeviceAmounts left;  // of what is reserved
    };
    Held* held_by(ReservationIndex reservation, size_t place);
    size_t place_of(const model::DeviceShare& share) const;
    void count(uint32_t member);
    void take(const Member& pod, size_t place, DeviceAmounts amounts);
    void close(DeviceType type, Fault fault, uint32_t member, int32_t minor);

    std::vector<Held> held_;
};

// What a filter reads of every row, side by side. Of gpus.
struct DeviceDigest {
    enum class State : uint8_t { Nothing, Open, Closed };
    State state = State::Nothing;  // of gpus; Nothing: no Device, and nobody has any by name
    bool plain = false;            // no partitions, no reservation holds devices
    bool one_has_most = false;     // one of them has all of `most`
    int16_t whole = 0;             // that nobody has any part of
    int16_t count = 0;             // healthy
    DeviceAmounts most;            // free of one of them, each amount by itself
    int64_t total_ratio = 0;       // of all
    int64_t free_ratio = 0;
};

// The devices of all nodes. Events come in any order.
class Devices {
public:
    // By their nodes' names. Whoever changes one shows the node again. False: what is known is newer.
    bool put(std::shared_ptr<const model::Device> device);
    bool remove(std::string_view node, std::string_view uid);  // false: it is another one, or unknown
    // The node is a row now, or has changed.
    void see(Row row, std::string_view node, bool honors_partitions = false);
    void forget(Row row);
    void enter(Row row, NodeDevices::Member member);
    void leave(Row row, bool reservation, uint32_t index);

    // nullptr: the node has no Device, and nobody has any of it.
    const NodeDevices* at(Row row) const { return row < rows_.size() ? rows_[row].get() : nullptr; }
    const DeviceDigest& digest(Row row) const {
        static constexpr DeviceDigest kNothing{};
        return row < digests_.size() ? digests_[row] : kNothing;
    }
    // nullptr: there is none.
    const model::Device* known(std::string_view node) const;
    // Calls f(node) for each that has a Device.
    template <class F>
    void each_known(F f) const {
        for (const auto& [node, device] : known_) f(node);
    }

private:
    NodeDevices& made(Row row);
    void recompute(Row row);

    std::vector<std::unique_ptr<NodeDevices>> rows_;
    std::vector<DeviceDigest> digests_;
    base::StringMap<std::shared_ptr<const model::Device>> known_;  // by node
};

}  // namespace berth::ledger
