#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ledger/devices.h"
#include "model/device_request.h"

// Which of a node's devices a pod or a reservation gets.
namespace berth::sched {

// Which of several that would do, as far as topology and reservations leave it open.
enum class DeviceOrder : uint8_t { LeastAllocated, MostAllocated };

// The reservations that pay, and the types of which nothing may be taken but what they hold.
struct DeviceSources {
    std::vector<ledger::ReservationIndex> from = {};
    std::array<bool, model::kDeviceTypes> restricted = {};
};

struct DeviceChoice {
    model::DeviceRecord record;
    std::string refusal;  // why there is none; empty: the record is it
};

// In the order of the demand's types. Every device is had wholly as asked: from what is free of it and what those who
// pay have left of it; theirs first. Of several groups the narrowest that is enough, then the one with the fewest to
// spare; of equal devices the smallest minor.
//   partitions:  whole GPUs go by the node's table where it says so, or the pod asks for it
//   joint:       the types after the first on the PCIe switches of the first, one each in turn
DeviceChoice choose_devices(const model::DeviceDemand& demand, const ledger::NodeDevices* node,
                            const DeviceSources& sources, DeviceOrder order);

// Why a record that somebody else made does not serve the demand, or is not to be had; empty: it does.
std::string check_devices(const model::DeviceDemand& demand, const model::DeviceRecord& record,
                          const ledger::NodeDevices* node, const DeviceSources& sources);

}  // namespace berth::sched
