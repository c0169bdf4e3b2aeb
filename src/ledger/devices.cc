#include "ledger/devices.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace berth::ledger {
namespace {

constexpr size_t kNoPlace = SIZE_MAX;

size_t index_of(DeviceType type) {
    return static_cast<size_t>(type);
}

// Below nothing there is nothing.
DeviceAmounts at_least_nothing(const DeviceAmounts& amounts) {
    return amounts.or_more({});
}

DeviceDigest digest_of(const NodeDevices& node) {
    DeviceDigest out;
    if (!node.by_name) return out;
    using State = DeviceDigest::State;
    const bool closed = node.closed[index_of(DeviceType::Gpu)].fault != NodeDevices::Fault::None;
    out.state = closed ? State::Closed : State::Open;
    const auto reserves = [](const NodeDevices::Member& member) { return member.reservation; };
    out.plain = node.object && node.object->partitions.empty() && !node.partitions_only() &&
                std::none_of(node.members.begin(), node.members.end(), reserves);
    for (size_t place = 0; place < node.unit_count(); ++place) {
        const model::DeviceUnit& unit = node.unit(place);
        if (unit.type != DeviceType::Gpu || !unit.healthy) continue;
        const DeviceAmounts& free = node.free[place];
        ++out.count;
        out.most = out.most.or_more(free);
        out.total_ratio += unit.total.ratio;
        out.free_ratio += free.ratio;
        const bool whole = unit.total.core == model::kWholeDevice && unit.total.ratio == model::kWholeDevice;
        if (whole && free == unit.total) ++out.whole;
    }
    for (size_t place = 0; place < node.unit_count(); ++place) {
        const bool gpu = node.unit(place).type == DeviceType::Gpu;
        out.one_has_most = out.one_has_most || (gpu && node.free[place] == out.most);
    }
    return out;
}

}  // namespace

// ---- a node

size_t NodeDevices::place_of(const model::DeviceShare& share) const {
    const model::DeviceUnit* found = object ? object->find(share.type, share.minor) : nullptr;
    return found ? static_cast<size_t>(found - object->units.data()) : kNoPlace;
}

NodeDevices::Held* NodeDevices::held_by(ReservationIndex reservation, size_t place) {
    const auto found = std::find_if(held_.begin(), held_.end(), [&](const Held& held) {
        return held.reservation == reservation && held.place == place;
    });
    return found == held_.end() ? nullptr : &*found;
}

// The first thing that is wrong stands.
void NodeDevices::close(DeviceType type, Fault fault, uint32_t member, int32_t minor) {
    Closed& at = closed[index_of(type)];
    if (at.fault == Fault::None) at = {fault, member, minor};
}

void NodeDevices::count(uint32_t member) {
    const Member& by = members[member];
    std::array<bool, model::kDeviceTypes> said{};
    for (const model::DeviceType type : model::kAllDeviceTypes) {
        if (by.unreadable) close(type, Fault::Unreadable, member, -1);
    }
    if (by.unreadable) return;
    for (size_t i = 0; by.record && i < by.record->size(); ++i) {
        const model::DeviceShare& share = (*by.record)[i];
        said[index_of(share.type)] = true;
        const size_t place = place_of(share);
        if (place == kNoPlace) {
            close(share.type, Fault::Vanished, member, share.minor);
            continue;
        }
        if (by.reservation) {
            held_.push_back({by.index, place, share.amounts});
        } else {
            take(by, place, share.amounts);
        }
    }
    for (const model::DeviceType type : model::kAllDeviceTypes) {
        if (by.asks[index_of(type)] && !said[index_of(type)]) close(type, Fault::Unsaid, member, -1);
    }
}

void NodeDevices::take(const Member& pod, size_t place, DeviceAmounts amounts) {
    used[place].add(amounts);
    for (const ReservationIndex payer : pod.from) {
        Held* held = held_by(payer, place);
        if (held == nullptr) continue;
        const DeviceAmounts part = amounts.or_less(held->left);
        held->left.subtract(part);
        amounts.subtract(part);
    }
}

void NodeDevices::recompute() {
    by_name =
        object || std::any_of(members.begin(), members.end(), [](const Member& member) { return member.named(); });
    closed = {};
    held_.clear();
    used.assign(unit_count(), {});
    free.assign(unit_count(), {});
    // Reservations first: it is theirs that owners are charged to.
    for (uint32_t member = 0; member < members.size(); ++member) {
        if (members[member].reservation) count(member);
    }
    std::vector<uint32_t> several;
    for (uint32_t member = 0; member < members.size(); ++member) {
        if (members[member].reservation) continue;
        if (members[member].from.size() < 2) {
            count(member);
        } else {
            several.push_back(member);
        }
    }
    std::sort(several.begin(), several.end(), [&](uint32_t a, uint32_t b) {
        const auto key = [](const Member& pod) { return std::tuple(pod.from.size(), std::string_view(pod.order)); };
        return key(members[a]) < key(members[b]);
    });
    for (const uint32_t member : several) count(member);
    for (const Held& held : held_) used[held.place].add(held.left);
    for (size_t place = 0; place < unit_count(); ++place) {
        if (!unit(place).healthy) continue;
        if (!used[place].within(unit(place).total)) close(unit(place).type, Fault::Overfull, 0, unit(place).minor);
        free[place] = unit(place).total;
        free[place].subtract(used[place]);
        free[place] = at_least_nothing(free[place]);
    }
}

DeviceAmounts NodeDevices::remaining(ReservationIndex reservation, size_t place) const {
    if (!unit(place).healthy) return {};
    for (const Held& held : held_) {
        if (held.reservation == reservation && held.place == place) return held.left;
    }
    return {};
}

bool NodeDevices::holds(ReservationIndex reservation, DeviceType type) const {
    return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
        return held.reservation == reservation && unit(held.place).type == type;
    });
}

bool NodeDevices::has_left(ReservationIndex reservation, DeviceType type) const {
    return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
        return held.reservation == reservation && unit(held.place).type == type && unit(held.place).healthy &&
               !held.left.none();
    });
}

bool NodeDevices::function_free(size_t place, const model::VirtualFunction& function,
                                const std::vector<ReservationIndex>& but) const {
    const model::DeviceUnit& of = unit(place);
    for (const Member& member : members) {
        if (!member.record) continue;
        const bool theirs = member.reservation && std::find(but.begin(), but.end(), member.index) != but.end();
        for (const model::DeviceShare& share : *member.record) {
            if (theirs || share.type != of.type || share.minor != of.minor) continue;
            if (std::find(share.functions.begin(), share.functions.end(), function) != share.functions.end()) {
                return false;
            }
        }
    }
    return true;
}

// ---- all nodes

NodeDevices& Devices::made(Row row) {
    if (rows_.size() <= row) {
        rows_.resize(row + 1u);
        digests_.resize(row + 1u);
    }
    if (!rows_[row]) rows_[row] = std::make_unique<NodeDevices>();
    return *rows_[row];
}

void Devices::recompute(Row row) {
    NodeDevices& node = *rows_[row];
    node.recompute();
    digests_[row] = digest_of(node);
    if (!node.object && node.members.empty()) rows_[row] = nullptr;
}

bool Devices::put(std::shared_ptr<const model::Device> device) {
    auto& known = known_[device->meta.name];
    const bool same = known && known->meta.uid == device->meta.uid;
    if (same && device->meta.revision < known->meta.revision) return false;
    known = std::move(device);
    return true;
}

bool Devices::remove(std::string_view node, std::string_view uid) {
    const auto found = known_.find(node);
    if (found == known_.end()) return false;
    if (!uid.empty() && found->second->meta.uid != uid) return false;
    known_.erase(found);
    return true;
}

const model::Device* Devices::known(std::string_view node) const {
    const auto found = known_.find(node);
    return found == known_.end() ? nullptr : found->second.get();
}

void Devices::see(Row row, std::string_view node, bool honors_partitions) {
    const auto found = known_.find(node);
    if (found == known_.end() && !at(row)) return;
    made(row).object = found == known_.end() ? nullptr : found->second;
    made(row).honors_partitions = honors_partitions;
    recompute(row);
}

void Devices::forget(Row row) {
    if (row >= rows_.size()) return;
    rows_[row] = nullptr;
    digests_[row] = {};
}

void Devices::enter(Row row, NodeDevices::Member member) {
    made(row).members.push_back(std::move(member));
    recompute(row);
}

void Devices::leave(Row row, bool reservation, uint32_t index) {
    if (!at(row)) return;
    std::erase_if(rows_[row]->members, [&](const NodeDevices::Member& member) {
        return member.reservation == reservation && member.index == index;
    });
    recompute(row);
}

}  // namespace berth::ledger
