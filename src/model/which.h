#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "model/core_record.h"
#include "model/device_allocated.h"
#include "model/labels.h"

namespace berth::model {

// Which ones of a node's parts a pod or a reservation has, beside how much: cores, devices. It is written with the
// placement in one step (a pod's in the annotations of its Binding, a reservation's in its status), so no crash can
// part them, and who holds what is read from it again. A part is a member here, and a line in each function of
// which.cc.
struct Which {
    CoreRecord cores;
    DeviceRecord devices;
    // A record cannot be read: nobody knows which ones it has.
    std::string fault;  // of cores
    std::string device_fault;
    bool names_cores() const { return !cores.empty() || !fault.empty(); }
    bool names_devices() const { return !devices.empty() || !device_fault.empty(); }
    bool empty() const { return !names_cores() && !names_devices(); }
    // The first of them; empty: all is known.
    const std::string& any_fault() const { return fault.empty() ? device_fault : fault; }
    bool operator==(const Which&) const = default;
};

// The annotations that it is kept in: the scheduler's to write, and meaningless on a pod that is not bound.
inline constexpr std::array kWhichAnnotations{kResourceStatus, kDeviceAllocated};

Which read_which(const Labels& annotations);
void write_which(const Which& which, Labels& annotations);
// In a reservation's status. A record that cannot be read harms the parts of its node, not the reservation.
void read_which(const Reader& status, Which& out);
void write_which(const Which& which, JsonObject& status);

}  // namespace berth::model
