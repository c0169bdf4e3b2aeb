// DeviceShare: which devices of a row an ask gets.
#include "sched/plugins/device_share.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sched/draw.h"

namespace berth::sched::plugins {
namespace {

using ledger::DeviceDigest;
using ledger::NodeDevices;
using model::DeviceDemand;
using model::DevicesWanted;
using model::DeviceType;

constexpr PluginId kPlugin = PluginId::DeviceShare;

// GPUs by their amounts alone, whichever they are.
bool counts_alone(const DeviceDemand& demand) {
    if (demand.types.size() != 1 || demand.partition) return false;
    const DevicesWanted& wanted = demand.types.front();
    return wanted.type == DeviceType::Gpu && !wanted.of_all && !wanted.selector && !wanted.functions &&
           wanted.scope == model::DeviceScope::Node && wanted.exclusive == model::DeviceExclusive::None;
}

bool enough(const DevicesWanted& wanted, const NodeDevices& node, const DeviceDigest& digest) {
    if (wanted.whole() && wanted.memory == 0) return wanted.count <= digest.whole;
    int32_t there = 0;
    for (size_t place = 0; place < node.unit_count() && there < wanted.count; ++place) {
        const model::DeviceUnit& unit = node.unit(place);
        if (unit.type != DeviceType::Gpu || !unit.healthy) continue;
        const auto takes = wanted.of(unit);
        there += takes && takes->within(node.free[place]) ? 1 : 0;
    }
    return there >= wanted.count;
}

bool is_of(DeviceType type, model::ResourceId id) {
    const auto& names = model::device_resources();
    if (type == DeviceType::Gpu) return names.is_gpu(id);
    return id == (type == DeviceType::Rdma ? names.rdma : names.fpga);
}

DeviceSources sources_of(const ledger::Charges& charges, const View& ledger) {
    DeviceSources out;
    for (const auto& charge : charges) {
        out.from.push_back(charge.reservation);
        for (const DeviceType type : model::kAllDeviceTypes) {
            if (restricts_devices(charge.reservation, type, ledger)) out.restricted[static_cast<size_t>(type)] = true;
        }
    }
    return out;
}

// Which of them comes first decides where others have to be near it: what the fast way found may need its own order.
DeviceChoice choice_on(const model::PodSpec& spec, const View& ledger, Row row, const ledger::Charges& charges,
                       bool packs) {
    if (!spec.devices.demand) return {};
    const DeviceSources sources = sources_of(charges, ledger);
    const NodeDevices* node = ledger.devices().at(row);
    if (packs) {
        DeviceChoice choice = choose_devices(*spec.devices.demand, node, sources, DeviceOrder::MostAllocated);
        if (choice.refusal.empty()) return choice;
    }
    return choose_devices(*spec.devices.demand, node, sources, DeviceOrder::LeastAllocated);
}

// nullopt: it takes a closer look.
std::optional<bool> open_at_a_glance(const model::PodSpec& spec, const View& ledger, Row row) {
    const DeviceDemand& demand = *spec.devices.demand;
    const DeviceDigest& digest = ledger.devices().digest(row);
    if (digest.state == DeviceDigest::State::Nothing) return demand.vendors_only;
    if (digest.state == DeviceDigest::State::Closed || !digest.plain || !counts_alone(demand)) return std::nullopt;
    return enough(demand.types.front(), *ledger.devices().at(row), digest);
}

// Percents of all devices of the type, and of those that are free.
std::pair<int64_t, int64_t> totals(const View& ledger, Row row, DeviceType type) {
    const NodeDevices* node = ledger.devices().at(row);
    if (type == DeviceType::Gpu) {
        const DeviceDigest& digest = ledger.devices().digest(row);
        return {digest.total_ratio, digest.free_ratio};
    }
    std::pair<int64_t, int64_t> out;
    for (size_t place = 0; node && place < node->unit_count(); ++place) {
        if (node->unit(place).type != type || !node->unit(place).healthy) continue;
        out.first += node->unit(place).total.core;
        out.second += node->free[place].core;
    }
    return out;
}

// What it takes of each, in percents; where it asks in bytes, of the row's first.
int64_t percents(const DevicesWanted& wanted, const NodeDevices& node) {
    if (wanted.type != DeviceType::Gpu) return wanted.core;
    if (wanted.memory == 0) return wanted.ratio;
    for (size_t place = 0; place < node.unit_count(); ++place) {
        const model::DeviceUnit& unit = node.unit(place);
        if (unit.type != DeviceType::Gpu || !unit.healthy) continue;
        const auto takes = wanted.of(unit);
        return takes ? takes->ratio : model::kWholeDevice;
    }
    return model::kWholeDevice;
}

constexpr int32_t kThousandths = kWholeGpu / model::kWholeDevice;  // of a GPU, a percent

// What of the row is free, as packing counts it.
GpuRoom room_on(const View& ledger, Row row, const NodeDevices& node) {
    GpuRoom room;
    room.cpu_milli = ledger.free(row, model::kCpu);
    for (size_t place = 0; place < node.unit_count(); ++place) {
        const model::DeviceUnit& unit = node.unit(place);
        if (unit.type != DeviceType::Gpu || !unit.healthy) continue;
        room.free.push_back(static_cast<int32_t>(node.free[place].ratio * kThousandths));
    }
    return room;
}

// 0 to 100. Those of Stranding have no ends: a GPU more or less is as far from the middle as FGD has it.
int64_t packed_points(Packing packing, const GpuMix& mix, const GpuRoom& room, const GpuDemand& demand) {
    if (!fits(room, demand)) return 0;  // reservations pay
    const int64_t points = packed(packing, mix, room, demand).points;
    if (packing != Packing::Stranding) return std::clamp<int64_t>(points, 0, kMaxScore);
    constexpr double kGpu = 1'000'000;
    return static_cast<int64_t>(kMaxScore / (1.0 + std::exp(-static_cast<double>(points) / kGpu)));
}

// What of the devices of the first type that it asks for stays free, in hundredths; MostAllocated: what does not.
// E.g. 8 GPUs of which 6 are free, 2 asked for: 50. Packed: as sched/packing.h says.
class ShareScorer final : public DeviceScorer {
public:
    explicit ShareScorer(DeviceStrategy strategy)
        : type_(strategy.type), packing_(strategy.packing), mix_(std::move(strategy.mix)) {}
    PluginId plugin() const override { return kPlugin; }
    RowTerm row_term() const override { return RowTerm::Devices; }
    bool concerns(const Ask& ask, const View&) const override { return ask.spec->devices.demand != nullptr; }
    void score(const Ask& ask, const View& ledger, std::span<const Row> feasible,
               std::span<int64_t> points_of) const override {
        std::fill(points_of.begin(), points_of.end(), 0);
        if (!ask.spec->devices.demand) return;
        for (size_t i = 0; i < feasible.size(); ++i) points_of[i] = points(*ask.spec, ledger, feasible[i]);
    }
    int64_t points(const model::PodSpec& spec, const View& ledger, Row row) const override {
        const NodeDevices* node = ledger.devices().at(row);
        if (node == nullptr || !spec.devices.demand) return 0;
        const DevicesWanted& wanted = spec.devices.demand->types.front();
        if (type_ == DeviceStrategy::Type::Packed && wanted.type == DeviceType::Gpu) {
            return packed_points(packing_, mix_, room_on(ledger, row, *node),
                                 {spec.requests.get(model::kCpu), 0, wanted.count,
                                  static_cast<int32_t>(percents(wanted, *node) * kThousandths)});
        }
        const auto [total, free] = totals(ledger, row, wanted.type);
        if (total == 0) return 0;
        const int64_t left = std::clamp<int64_t>(free - wanted.count * percents(wanted, *node), 0, total);
        return (type_ == DeviceStrategy::Type::LeastAllocated ? left : total - left) * kMaxScore / total;
    }

private:
    DeviceStrategy::Type type_;
    Packing packing_;
    GpuMix mix_;
};

class DeviceFilter final : public Filter {
public:
    PluginId plugin() const override { return kPlugin; }
    RowTerm row_term() const override { return RowTerm::Devices; }
    bool concerns(const Ask& ask, const View&) const override { return ask.spec->devices.asks(); }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        const model::DeviceWish& wish = ask.spec->devices;
        if (!wish.asks()) return;
        if (!wish.fault.empty()) return strikes.refuse(strikes.refusal(kPlugin, {wish.fault}, true));
        strikes.each_open([&](Row row) {
            const bool pays = ask.credit(row) != nullptr;
            if (!pays && open_at_a_glance(*ask.spec, ledger, row).value_or(false)) return;
            DeviceChoice choice = devices_on(ask, ledger, row, pays ? charges_on(ask, ledger, row) : ledger::Charges());
            if (choice.refusal.empty()) return;
            const bool known = ledger.devices().known(ledger.name(row)) != nullptr;
            strikes.strike(row, strikes.refusal(kPlugin, {std::move(choice.refusal)}, !known));
        });
    }
};

}  // namespace

bool devices_open(const model::PodSpec& spec, const View& ledger, Row row) {
    if (!spec.devices.demand) return spec.devices.fault.empty();
    if (const auto open = open_at_a_glance(spec, ledger, row)) return *open;
    return choice_on(spec, ledger, row, {}, false).refusal.empty();
}

bool restricts_devices(ReservationIndex index, DeviceType type, const View& ledger) {
    const auto& entry = ledger.reservation(index);
    if (entry.policy != model::AllocatePolicy::Restricted) return false;
    const NodeDevices* node = ledger.devices().at(entry.row);
    if (node == nullptr || !node->holds(index, type)) return false;
    bool any = false;
    entry.allocatable.for_each(
        [&](model::ResourceId id, int64_t) { any = any || (is_of(type, id) && entry.object->restricts(id)); });
    return any;
}

bool wants_devices(const Ask& ask, const View& ledger, Row row) {
    const auto& demand = ask.spec->devices.demand;
    if (!demand) return false;
    const NodeDevices* node = ledger.devices().at(row);
    return !demand->vendors_only || (node != nullptr && node->by_name);
}

DeviceChoice devices_on(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges) {
    DeviceChoice choice = choice_on(*ask.spec, ledger, row, charges, ask.packs);
    if (choice.refusal.empty()) return choice;
    for (const DevicesWanted& wanted : ask.spec->devices.demand->types) {
        const std::string fault = ledger.device_fault(row, wanted.type);
        if (!fault.empty()) choice.refusal = "node(s) give nobody devices: " + fault;
    }
    return choice;
}

std::string judge_devices(const model::DeviceRecord& record, const model::PodSpec& spec, const View& ledger, Row row,
                          const ledger::Charges& charges) {
    if (!spec.devices.fault.empty()) return spec.devices.fault;
    static const DeviceDemand kNone;
    const DeviceDemand& demand = spec.devices.demand ? *spec.devices.demand : kNone;
    return check_devices(demand, record, ledger.devices().at(row), sources_of(charges, ledger));
}

std::shared_ptr<const Filter> device_filter() {
    return std::make_shared<DeviceFilter>();
}

std::shared_ptr<const Scorer> device_scorer(DeviceStrategy strategy) {
    return std::make_shared<ShareScorer>(std::move(strategy));
}

}  // namespace berth::sched::plugins
