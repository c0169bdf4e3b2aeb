#pragma once

#include <array>
#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_view.h"
#include "base/result.h"
#include "model/meta.h"
#include "model/resources.h"

namespace berth::model {

// scheduling.koordinator.sh/v1alpha1 Device: the devices of the node of the same name.

enum class DeviceType : uint8_t { Gpu, Rdma, Fpga };
inline constexpr size_t kDeviceTypes = 3;
inline constexpr std::array kAllDeviceTypes{DeviceType::Gpu, DeviceType::Rdma, DeviceType::Fpga};
std::string_view name_of(DeviceType type);
std::optional<DeviceType> device_type_named(std::string_view name);

inline constexpr int64_t kWholeDevice = 100;  // percents
inline constexpr int64_t kMostDeviceMemory = int64_t{1} << 50;

// Of one device. A gpu has percents of its cores and of its memory, and memory in bytes; of the others only `core`,
// percents of the device itself, is not 0.
struct DeviceAmounts {
    int64_t core = 0;
    int64_t ratio = 0;
    int64_t memory = 0;

    bool operator==(const DeviceAmounts&) const = default;
    bool none() const { return *this == DeviceAmounts(); }
    bool within(const DeviceAmounts& room) const {
        return core <= room.core && ratio <= room.ratio && memory <= room.memory;
    }
    void add(const DeviceAmounts& other);
    void subtract(const DeviceAmounts& other);
    // Of each the larger, the smaller.
    DeviceAmounts or_more(const DeviceAmounts& other) const;
    DeviceAmounts or_less(const DeviceAmounts& other) const;
};

struct VirtualFunction {
    int32_t minor = 0;
    std::string bus;
    auto operator<=>(const VirtualFunction&) const = default;
};

struct VirtualFunctions {
    Labels labels;
    std::vector<VirtualFunction> functions;  // by bus
};

struct DeviceUnit {
    DeviceType type = DeviceType::Gpu;
    int32_t minor = 0;
    std::string id;
    bool healthy = false;
    DeviceAmounts total;  // none of one that is not healthy
    int32_t numa = -1;    // -1: not said
    std::string pcie;     // "": not said
    std::string bus;
    Labels labels;
    std::vector<VirtualFunctions> functions;
};

// GPUs that work well together.
struct GpuPartition {
    std::vector<int32_t> minors;  // sorted
    int64_t score = 0;            // allocationScore
    int64_t bandwidth = 0;        // ringBusBandwidth
};

struct Device {
    Meta meta;
    std::vector<DeviceUnit> units;                           // by type, then minor, which are distinct
    std::map<size_t, std::vector<GpuPartition>> partitions;  // by how many GPUs they have
    bool partitions_only = false;                            // policy Honor: GPUs go by partitions
    // What cannot be understood, or cannot be: the devices it speaks of are given to nobody.
    std::vector<std::string> faults;

    const DeviceUnit* find(DeviceType type, int32_t minor) const;
    // Of the devices that are healthy, by the names that pods ask for them.
    Resources sums() const;
};

inline constexpr std::string_view kGpuPartitions = "scheduling.koordinator.sh/gpu-partitions";
inline constexpr std::string_view kGpuPartitionPolicy = "node.koordinator.sh/gpu-partition-policy";

// The label of a Node, or of its Device.
bool honors_partitions(const Labels& labels);

// One that is broken in part is read with faults; only what is no Device at all is an Error.
Result<Device> read_device(JsonView object);

// The names of amounts of devices, as numbers.
struct DeviceResources {
    ResourceId gpu, shared, core, memory, ratio, rdma, fpga;
    std::array<ResourceId, 3> vendors;  // whole GPUs: nvidia.com/gpu, amd.com/gpu, dcu.com/gpu
    bool is_gpu(ResourceId id) const;
    bool has(ResourceId id) const { return id == rdma || id == fpga || is_gpu(id); }
};
const DeviceResources& device_resources();
bool asks_for_devices(const Resources& requests);

}  // namespace berth::model
