#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/device.h"
#include "model/selector.h"

namespace berth::model {

// What a pod asks of the devices of its node: amounts in its requests, and wishes in its annotations.

inline constexpr std::string_view kDeviceHint = "scheduling.koordinator.sh/device-allocate-hint";
inline constexpr std::string_view kDeviceJoint = "scheduling.koordinator.sh/device-joint-allocate";
inline constexpr std::string_view kGpuPartitionSpec = "scheduling.koordinator.sh/gpu-partition-spec";

enum class DeviceScope : uint8_t { Node, NumaNode, Pcie, Device };  // wide to narrow
std::string_view name_of(DeviceScope scope);
enum class DeviceExclusive : uint8_t { None, Device, Pcie };

// `count` devices of one type, of each the same part.
struct DevicesWanted {
    DeviceType type = DeviceType::Gpu;
    int32_t count = 0;
    int64_t core = 0;   // percents
    int64_t ratio = 0;  // percents; of a gpu, unless `memory` says it in bytes
    int64_t memory = 0;
    bool of_all = false;  // of every device that the selector takes, however many there are
    std::optional<Selector> selector;
    std::optional<Selector> functions;      // one free virtual function of each, of a group with such labels
    DeviceScope scope = DeviceScope::Node;  // all of them within one
    DeviceExclusive exclusive = DeviceExclusive::None;

    bool operator==(const DevicesWanted&) const = default;
    // What that is of this device; nullopt: of this one it cannot be had.
    std::optional<DeviceAmounts> of(const DeviceUnit& unit) const;
    bool whole() const { return ratio >= kWholeDevice && core >= kWholeDevice; }
};

struct DeviceDemand {
    std::vector<DevicesWanted> types;  // each once; in the order in which they are chosen
    // Joint: the others near the first of these...
    std::vector<DeviceType> joint;
    bool same_pcie = false;  // ... on the same PCIe switches
    bool partition = false;  // gpu-partition-spec is given
    bool best_partition_only = false;
    int64_t partition_bandwidth = 0;

    // Only vendors' names of whole GPUs, which a node without a Device may serve by itself.
    bool vendors_only = false;

    bool operator==(const DeviceDemand&) const = default;
    bool empty() const { return types.empty(); }
    const DevicesWanted* find(DeviceType type) const;
};

// An Error says which of the requests do not go together, or which annotation cannot be understood. Annotations are not
// looked at where no device is asked for.
Result<DeviceDemand> read_device_demand(const Resources& requests, const Labels& annotations);

}  // namespace berth::model
