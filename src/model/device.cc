#include "model/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include "base/saturating.h"
#include "model/annotation.h"
#include "model/pod_resources.h"
#include "model/reader.h"

namespace berth::model {
namespace {

constexpr std::array<std::string_view, kDeviceTypes> kTypes{"gpu", "rdma", "fpga"};
constexpr int64_t kMostMinor = INT32_MAX;
constexpr size_t kMostPartitions = 512;  // each is weighed against all others

ResourceId known_resource(std::string_view name) {
    auto id = intern_resource(name);
    CHECK(id.ok());  // they are met before the names run out
    return *id;
}

bool in_range(int64_t amount, int64_t most) {
    return amount >= 0 && amount <= most;
}

// One entry of spec.devices; whatever is wrong with it ends up in `trouble`.
DeviceUnit read_unit(const Reader& from) {
    DeviceUnit unit;
    const Reader type = from["type"];
    if (const auto named = device_type_named(type.text())) {
        unit.type = *named;
    } else {
        type.wrong(fmt::format("must be gpu, rdma or fpga, but is \"{}\"", type.text()));
    }
    const Reader minor = from["minor"];
    const int64_t number = minor.integer(-1);
    if (!minor.present()) minor.wrong("is required");
    if (!in_range(number, kMostMinor)) minor.wrong(fmt::format("must not be negative, but is {}", number));
    unit.minor = static_cast<int32_t>(std::clamp<int64_t>(number, -1, kMostMinor));
    unit.id = from["id"].text();
    unit.healthy = from["health"].flag();
    unit.labels = read_labels(from["labels"]);
    const Reader at = from["topology"];
    unit.numa = static_cast<int32_t>(std::clamp<int64_t>(at["nodeID"].integer(-1), -1, INT32_MAX));
    unit.pcie = at["pcieID"].text();
    unit.bus = at["busID"].text();
    const Reader groups = from["vfGroups"];
    groups.each([&](const Reader& group) {
        VirtualFunctions& read = unit.functions.emplace_back();
        read.labels = read_labels(group["labels"]);
        const Reader functions = group["vfs"];
        functions.each([&](const Reader& item) {
            read.functions.push_back(
                {static_cast<int32_t>(item["minor"].integer()), std::string(item["busID"].text())});
        });
        std::sort(read.functions.begin(), read.functions.end(),
                  [](const auto& a, const auto& b) { return std::tie(a.bus, a.minor) < std::tie(b.bus, b.minor); });
    });
    return unit;
}

DeviceAmounts read_totals(DeviceType type, const Reader& list) {
    const DeviceResources& names = device_resources();
    const Resources given = read_resource_list(list);
    DeviceAmounts total;
    const auto take = [&](ResourceId id, int64_t most, int64_t otherwise) {
        const int64_t amount = given.get(id, otherwise);
        if (in_range(amount, most)) return amount;
        list.wrong(fmt::format("{} must be from 0 to {}, but is {}", resource_name(id), most, amount));
        return int64_t{0};
    };
    if (type != DeviceType::Gpu) {
        total.core = take(type == DeviceType::Rdma ? names.rdma : names.fpga, kWholeDevice, 0);
        return total;
    }
    total.core = take(names.core, kWholeDevice, 0);
    total.memory = take(names.memory, kMostDeviceMemory, 0);
    total.ratio = take(names.ratio, kWholeDevice, 0);
    return total;
}

// {"2":[{"minors":[0,1],"allocationScore":1,"ringBusBandwidth":"200Gi"}]}
void read_partitions(Device& out) {
    const std::string* text = out.meta.annotations.find(kGpuPartitions);
    if (!text || text->empty()) return;
    size_t count = 0;
    std::map<size_t, std::vector<GpuPartition>> read;
    const Status status = read_annotation(kGpuPartitions, *text, [&](const Reader& root) {
        root.entries([&](std::string_view key, const Reader& list) {
            list.each([&](const Reader& item) {
                GpuPartition partition;
                const Reader minors = item["minors"];
                minors.each(
                    [&](const Reader& minor) { partition.minors.push_back(static_cast<int32_t>(minor.integer())); });
                std::sort(partition.minors.begin(), partition.minors.end());
                partition.score = item["allocationScore"].integer();
                const Reader width = item["ringBusBandwidth"];
                if (const auto quantity = Quantity::parse(width.text_or_number())) {
                    partition.bandwidth = quantity->value();
                }
                const auto twice = std::adjacent_find(partition.minors.begin(), partition.minors.end());
                const bool same = fmt::format("{}", partition.minors.size()) == key;
                if (!same || twice != partition.minors.end()) {
                    return minors.wrong(fmt::format("must be {} different GPUs", key));
                }
                if (++count > kMostPartitions) return minors.wrong("there are too many partitions");
                read[partition.minors.size()].push_back(std::move(partition));
            });
        });
    });
    if (status) {
        out.partitions = std::move(read);
    } else {
        out.faults.push_back(status.error().message);
    }
}

// Of two devices with one number nobody knows which is meant.
void drop_twins(Device& out) {
    std::set<std::pair<DeviceType, int32_t>> twins;
    for (size_t i = 1; i < out.units.size(); ++i) {
        const auto& [a, b] = std::tie(out.units[i - 1], out.units[i]);
        if (a.type == b.type && a.minor == b.minor) twins.emplace(a.type, a.minor);
    }
    for (const auto& [type, minor] : twins) {
        out.faults.push_back(fmt::format("spec.devices: two of type {} have the minor {}", name_of(type), minor));
    }
    std::erase_if(out.units, [&](const DeviceUnit& unit) { return twins.contains({unit.type, unit.minor}); });
}

}  // namespace

std::string_view name_of(DeviceType type) {
    return kTypes[static_cast<size_t>(type)];
}

std::optional<DeviceType> device_type_named(std::string_view name) {
    for (size_t i = 0; i < kTypes.size(); ++i) {
        if (kTypes[i] == name) return kAllDeviceTypes[i];
    }
    return std::nullopt;
}

void DeviceAmounts::add(const DeviceAmounts& other) {
    core = base::saturating_add(core, other.core);
    ratio = base::saturating_add(ratio, other.ratio);
    memory = base::saturating_add(memory, other.memory);
}

void DeviceAmounts::subtract(const DeviceAmounts& other) {
    core = base::saturating_subtract(core, other.core);
    ratio = base::saturating_subtract(ratio, other.ratio);
    memory = base::saturating_subtract(memory, other.memory);
}

DeviceAmounts DeviceAmounts::or_more(const DeviceAmounts& other) const {
    return {std::max(core, other.core), std::max(ratio, other.ratio), std::max(memory, other.memory)};
}

DeviceAmounts DeviceAmounts::or_less(const DeviceAmounts& other) const {
    return {std::min(core, other.core), std::min(ratio, other.ratio), std::min(memory, other.memory)};
}

const DeviceUnit* Device::find(DeviceType type, int32_t minor) const {
    const auto found = std::lower_bound(
        units.begin(), units.end(), std::pair(type, minor),
        [](const DeviceUnit& unit, const auto& key) { return std::pair(unit.type, unit.minor) < key; });
    return found == units.end() || found->type != type || found->minor != minor ? nullptr : &*found;
}

Resources Device::sums() const {
    const DeviceResources& names = device_resources();
    Resources out;
    for (const DeviceUnit& unit : units) {
        if (!unit.healthy) continue;
        if (unit.type == DeviceType::Rdma) out.add(names.rdma, unit.total.core);
        if (unit.type == DeviceType::Fpga) out.add(names.fpga, unit.total.core);
        if (unit.type != DeviceType::Gpu) continue;
        out.add(names.gpu, unit.total.core);
        out.add(names.core, unit.total.core);
        out.add(names.ratio, unit.total.ratio);
        out.add(names.memory, unit.total.memory);
        out.add(names.shared, kWholeDevice);
    }
    return out;
}

Result<Device> read_device(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    Device out;
    out.meta = read_meta(root);
    if (!trouble.empty()) return base::invalid(fmt::format("Device \"{}\": {}", out.meta.name, trouble));
    const Reader spec = root["spec"];
    const Reader devices = spec["devices"];
    devices.each([&](const Reader& item) {
        std::string fault;
        DeviceUnit unit;
        if (item.view()) {
            const Reader alone(*item.view(), fault);
            unit = read_unit(alone);
            unit.total = read_totals(unit.type, alone["resources"]);
        }
        if (fault.empty()) {
            if (!unit.healthy) unit.total = {};
            return out.units.push_back(std::move(unit));
        }
        out.faults.push_back(fmt::format("{}.{}", item.path(), fault));
    });
    if (!trouble.empty()) out.faults.push_back(trouble);
    std::stable_sort(out.units.begin(), out.units.end(), [](const DeviceUnit& a, const DeviceUnit& b) {
        return std::tie(a.type, a.minor) < std::tie(b.type, b.minor);
    });
    drop_twins(out);
    read_partitions(out);
    out.partitions_only = honors_partitions(out.meta.labels);
    return out;
}

bool honors_partitions(const Labels& labels) {
    return labels.get(kGpuPartitionPolicy) == "Honor";
}

bool DeviceResources::is_gpu(ResourceId id) const {
    return id == gpu || id == core || id == memory || id == ratio || id == shared ||
           std::find(vendors.begin(), vendors.end(), id) != vendors.end();
}

const DeviceResources& device_resources() {
    static const DeviceResources names{
        known_resource("koordinator.sh/gpu"),
        known_resource("koordinator.sh/gpu.shared"),
        known_resource("koordinator.sh/gpu-core"),
        known_resource("koordinator.sh/gpu-memory"),
        known_resource("koordinator.sh/gpu-memory-ratio"),
        known_resource("koordinator.sh/rdma"),
        known_resource("koordinator.sh/fpga"),
        {known_resource("nvidia.com/gpu"), known_resource("amd.com/gpu"), known_resource("dcu.com/gpu")},
    };
    return names;
}

bool asks_for_devices(const Resources& requests) {
    const DeviceResources& names = device_resources();
    bool asks = false;
    requests.for_each([&](ResourceId id, int64_t amount) {
        if (id > kPods && amount > 0) asks = asks || names.has(id);
    });
    return asks;
}

}  // namespace berth::model
