#include "model/device_request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/annotation.h"
#include "model/device_wish.h"
#include "model/pod_resources.h"
#include "model/read_selectors.h"

namespace berth::model {
namespace {

constexpr int64_t kMostDevices = 1024;  // on one node
constexpr std::array<std::string_view, 4> kDeviceScopes{"Node", "NUMANode", "PCIe", "Device"};

// What of gpus is asked for, 0 where nothing is.
struct GpuAmounts {
    int64_t vendor = 0, gpu = 0, shared = 0, core = 0, memory = 0, ratio = 0;
    int vendors = 0;
};

// Which names may stand together, one bit each.
enum : unsigned { kVendor = 1, kGpu = 2, kShared = 4, kCore = 8, kMemory = 16, kRatio = 32 };

constexpr std::array kTogether{
    unsigned{kVendor}, unsigned{kGpu},    unsigned{kMemory}, unsigned{kRatio},          kCore | kMemory,
    kCore | kRatio,    kShared | kMemory, kShared | kRatio,  kShared | kCore | kMemory, kShared | kCore | kRatio,
};

unsigned bits_of(const GpuAmounts& gpus) {
    return (gpus.vendor > 0 ? kVendor : 0u) | (gpus.gpu > 0 ? kGpu : 0u) | (gpus.shared > 0 ? kShared : 0u) |
           (gpus.core > 0 ? kCore : 0u) | (gpus.memory > 0 ? kMemory : 0u) | (gpus.ratio > 0 ? kRatio : 0u);
}

GpuAmounts gpu_amounts(const Resources& requests) {
    const DeviceResources& names = device_resources();
    GpuAmounts out;
    for (const ResourceId vendor : names.vendors) {
        const int64_t amount = requests.get(vendor);
        if (amount <= 0) continue;
        ++out.vendors;
        out.vendor = amount;
    }
    const auto positive = [&](ResourceId id) { return std::max<int64_t>(0, requests.get(id)); };
    out.gpu = positive(names.gpu);
    out.shared = positive(names.shared);
    out.core = positive(names.core);
    out.memory = positive(names.memory);
    out.ratio = positive(names.ratio);
    return out;
}

Error bad_unit(ResourceId id, int64_t amount, std::string_view must) {
    return base::invalid(fmt::format("invalid resource unit {}: {} ({})", resource_name(id), amount, must));
}

Status check_percent(ResourceId id, int64_t amount) {
    if (amount <= kWholeDevice || amount % kWholeDevice == 0) return {};
    return bad_unit(id, amount, "above 100 it must be a multiple of 100");
}

// Split over `count` devices.
Status check_split(ResourceId id, int64_t amount, int64_t count) {
    if (amount % count != 0) return bad_unit(id, amount, fmt::format("it does not divide by {}", count));
    if (amount / count > kWholeDevice) return bad_unit(id, amount, fmt::format("more than 100 for each of {}", count));
    return {};
}

Error not_together(const Resources& requests) {
    const DeviceResources& names = device_resources();
    std::vector<std::string_view> given;
    requests.for_each([&](ResourceId id, int64_t amount) {
        if (amount > 0 && names.is_gpu(id)) given.push_back(resource_name(id));
    });
    std::sort(given.begin(), given.end());
    const auto core = resource_name(names.core);
    const bool core_alone = given.size() == 1 && given.front() == core;
    return base::invalid(fmt::format("invalid resource device requests: [{}]{}", fmt::join(given, " "),
                                     core_alone ? " without gpu-memory or gpu-memory-ratio" : " do not go together"));
}

// E.g. ratio 200, core 100: two GPUs, of each all memory and half the cores.
Result<DevicesWanted> gpus_wanted(const Resources& requests) {
    const DeviceResources& names = device_resources();
    const GpuAmounts asked = gpu_amounts(requests);
    const bool known = std::find(kTogether.begin(), kTogether.end(), bits_of(asked)) != kTogether.end();
    if (!known || asked.vendors > 1) return not_together(requests);
    DevicesWanted out;
    if (asked.vendor > 0) {
        out.count = static_cast<int32_t>(std::min(asked.vendor, kMostDevices));
        out.core = out.ratio = kWholeDevice;
        return out;
    }
    TRY(check_percent(names.gpu, asked.gpu));
    const int64_t core = asked.gpu > 0 ? asked.gpu : asked.core;
    const int64_t ratio = asked.gpu > 0 ? asked.gpu : asked.ratio;
    int64_t count = 1;
    if (asked.shared > 0) {
        count = asked.shared;
        TRY(check_split(names.core, core, count));
        TRY(check_split(names.ratio, ratio, count));
    } else {
        TRY(check_percent(names.core, core));
        TRY(check_percent(names.ratio, ratio));
        if (ratio > kWholeDevice) count = ratio / kWholeDevice;
    }
    out.core = core / count;
    out.ratio = ratio / count;
    out.memory = asked.memory / count;
    if (asked.memory > 0 && out.memory == 0) {
        return bad_unit(names.memory, asked.memory, fmt::format("less than a byte for each of {}", count));
    }
    out.count = static_cast<int32_t>(std::min(count, kMostDevices));
    return out;
}

Result<DevicesWanted> others_wanted(DeviceType type, ResourceId id, int64_t amount) {
    TRY(check_percent(id, amount));
    DevicesWanted out;
    out.type = type;
    const int64_t count = amount > kWholeDevice ? amount / kWholeDevice : 1;
    out.core = amount / count;
    out.count = static_cast<int32_t>(std::min(count, kMostDevices));
    return out;
}

// The one of these words that the field says; the first when it says nothing.
template <size_t N>
size_t device_word(const Reader& field, const std::array<std::string_view, N>& words) {
    if (field.text().empty()) return 0;
    for (size_t i = 0; i < N; ++i) {
        if (field.text() == words[i]) return i;
    }
    field.wrong(fmt::format("must be one of {}, but is \"{}\"", fmt::join(words, ", "), field.text()));
    return 0;
}

constexpr std::array<std::string_view, 3> kStrategies{"", "ApplyForAll", "RequestsAsCount"};
constexpr std::array<std::string_view, 3> kExclusive{"", "DeviceLevel", "PCIeLevel"};

void read_hint(const Reader& from, DevicesWanted& out) {
    out.selector = read_selector(from["selector"]);
    out.functions = read_selector(from["vfSelector"]);
    const size_t strategy = device_word(from["allocateStrategy"], kStrategies);
    out.scope = static_cast<DeviceScope>(device_word(from["requiredTopologyScope"], kDeviceScopes));
    out.exclusive = static_cast<DeviceExclusive>(device_word(from["exclusivePolicy"], kExclusive));
    out.of_all = strategy == 1;
    if (strategy == 2) {
        const int64_t asked = int64_t{out.count} * std::max(out.core, int64_t{1});
        if (out.type == DeviceType::Gpu) return from["allocateStrategy"].wrong("RequestsAsCount is not for gpu");
        out.count = static_cast<int32_t>(std::min(asked, kMostDevices));
        out.core = 1;
    }
    if (out.exclusive != DeviceExclusive::Device) return;
    out.core = kWholeDevice;  // nobody else may have anything of it
    if (out.type == DeviceType::Gpu) {
        out.ratio = kWholeDevice;
        out.memory = 0;
    }
}

DevicesWanted* wanted_of(std::vector<DevicesWanted>& types, DeviceType type) {
    const auto found = std::find_if(types.begin(), types.end(), [&](const auto& one) { return one.type == type; });
    return found == types.end() ? nullptr : &*found;
}

Status read_hints(const Labels& annotations, DeviceDemand& out) {
    const std::string* text = annotations.find(kDeviceHint);
    if (!text || text->empty()) return {};
    return read_annotation(kDeviceHint, *text, [&](const Reader& root) {
        root.entries([&](std::string_view key, const Reader& hint) {
            const auto type = device_type_named(key);
            if (!type) return hint.wrong("is no type of devices; there are gpu, rdma and fpga");
            if (DevicesWanted* wanted = wanted_of(out.types, *type)) read_hint(hint, *wanted);
        });
    });
}

Status read_joint(const Labels& annotations, DeviceDemand& out) {
    const std::string* text = annotations.find(kDeviceJoint);
    if (!text || text->empty()) return {};
    TRY(read_annotation(kDeviceJoint, *text, [&](const Reader& root) {
        const Reader types = root["deviceTypes"];
        types.each([&](const Reader& item) {
            const auto type = device_type_named(item.text());
            if (!type) return item.wrong(fmt::format("\"{}\" is no type of devices", item.text()));
            if (std::find(out.joint.begin(), out.joint.end(), *type) != out.joint.end()) return;
            if (out.find(*type)) out.joint.push_back(*type);
        });
        constexpr std::array<std::string_view, 2> kScope{"", "SamePCIe"};
        out.same_pcie = device_word(root["requiredScope"], kScope) == 1;
    }));
    if (out.joint.size() < 2) {  // there is nothing to be joined
        out.joint.clear();
        out.same_pcie = false;
    }
    const auto place = [&](const DevicesWanted& wanted) {
        return std::find(out.joint.begin(), out.joint.end(), wanted.type) - out.joint.begin();
    };
    std::stable_sort(out.types.begin(), out.types.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
    return {};
}

Status read_partition_spec(const Labels& annotations, DeviceDemand& out) {
    const std::string* text = annotations.find(kGpuPartitionSpec);
    if (!text || text->empty()) return {};
    out.partition = true;
    return read_annotation(kGpuPartitionSpec, *text, [&](const Reader& root) {
        constexpr std::array<std::string_view, 3> kPolicies{"", "BestEffort", "Restricted"};
        out.best_partition_only = device_word(root["allocatePolicy"], kPolicies) == 2;
        const Reader width = root["ringBusBandwidth"];
        if (!width.present()) return;
        const auto quantity = Quantity::parse(width.text_or_number());
        if (!quantity || quantity->is_negative()) return width.wrong("must be a quantity");
        out.partition_bandwidth = quantity->value();
    });
}

}  // namespace

std::string_view name_of(DeviceScope scope) {
    return kDeviceScopes[static_cast<size_t>(scope)];
}

std::optional<DeviceAmounts> DevicesWanted::of(const DeviceUnit& unit) const {
    if (type != DeviceType::Gpu) return DeviceAmounts{core, 0, 0};
    if (memory == 0) return DeviceAmounts{core, ratio, ratio * unit.total.memory / kWholeDevice};
    if (unit.total.memory < memory) return std::nullopt;
    return DeviceAmounts{core, memory * kWholeDevice / unit.total.memory, memory};  // of at most 2^50 bytes
}

const DevicesWanted* DeviceDemand::find(DeviceType type) const {
    const auto found = std::find_if(types.begin(), types.end(), [&](const auto& one) { return one.type == type; });
    return found == types.end() ? nullptr : &*found;
}

Result<DeviceDemand> read_device_demand(const Resources& requests, const Labels& annotations) {
    const DeviceResources& names = device_resources();
    DeviceDemand out;
    if (!asks_for_devices(requests)) return out;
    const GpuAmounts gpus = gpu_amounts(requests);
    if (bits_of(gpus) != 0) out.types.push_back(TRY(gpus_wanted(requests)));
    if (const int64_t rdma = requests.get(names.rdma); rdma > 0) {
        out.types.push_back(TRY(others_wanted(DeviceType::Rdma, names.rdma, rdma)));
    }
    if (const int64_t fpga = requests.get(names.fpga); fpga > 0) {
        out.types.push_back(TRY(others_wanted(DeviceType::Fpga, names.fpga, fpga)));
    }
    out.vendors_only = gpus.vendor > 0 && out.types.size() == 1;
    if (annotations.empty()) return out;
    TRY(read_hints(annotations, out));
    TRY(read_joint(annotations, out));
    TRY(read_partition_spec(annotations, out));
    return out;
}

bool DeviceWish::operator==(const DeviceWish& other) const {
    if (fault != other.fault || !demand != !other.demand) return false;
    return demand == other.demand || *demand == *other.demand;
}

DeviceWish read_device_wish(const Resources& requests, const Labels& annotations) {
    if (!asks_for_devices(requests)) return {};
    auto read = read_device_demand(requests, annotations);
    if (!read) return {nullptr, read.error().message};
    return {std::make_shared<const DeviceDemand>(*std::move(read)), ""};
}

}  // namespace berth::model
