#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "model/device.h"

namespace berth::model {

// device-allocated, the record of which devices a pod or a reservation has; written with its binding.
inline constexpr std::string_view kDeviceAllocated = "scheduling.koordinator.sh/device-allocated";

struct DeviceShare {
    DeviceType type = DeviceType::Gpu;
    int32_t minor = 0;
    DeviceAmounts amounts;
    std::string id;
    std::vector<VirtualFunction> functions;
    bool operator==(const DeviceShare&) const = default;
};

class Reader;

using DeviceRecord = std::vector<DeviceShare>;  // by type, then minor, which are distinct

// The same of a document; what is wrong ends up in the Reader's trouble.
DeviceRecord read_device_record(const Reader& from);

// Empty where there is none. What cannot be understood, or cannot be (a device twice, more than all of one, less than
// nothing), gives an Error that quotes the key.
Result<DeviceRecord> read_device_record(const Labels& annotations);
std::string device_record_text(const DeviceRecord& record);
// For people: "gpu 0, gpu 1 (50 %), rdma 0".
std::string device_record_summary(const DeviceRecord& record);
// {"gpu":[{"minor":0,"id":"...","resources":{"koordinator.sh/gpu-core":"50"}}]}
JsonObject device_record_document(const DeviceRecord& record);

}  // namespace berth::model
