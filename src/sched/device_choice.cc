#include "sched/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace berth::sched {
namespace {

using ledger::NodeDevices;
using model::DeviceAmounts;
using model::DeviceDemand;
using model::DeviceScope;
using model::DevicesWanted;
using model::DeviceType;
using model::DeviceUnit;

constexpr std::string_view kMissing = "node(s) missing Device";
constexpr std::string_view kJoint = "node(s) Device Joint-Allocate rules violation";
constexpr std::string_view kNoPartition = "node(s) no GPU partition of the size is free";

// A device that would do.
struct Candidate {
    size_t place = 0;
    DeviceAmounts takes;
    bool theirs = false;  // of a reservation that pays
    int64_t free = 0;     // percents of it, after nothing is taken
    std::optional<model::VirtualFunction> function = {};
};
using Candidates = std::vector<Candidate>;

std::string people(DeviceType type, size_t count) {
    if (type == DeviceType::Gpu) return count == 1 ? "GPU" : "GPUs";
    return fmt::format("{} device{}", name_of(type), count == 1 ? "" : "s");
}

std::string insufficient(DeviceType type) {
    return fmt::format("Insufficient {} devices", name_of(type));
}

std::string_view place_in_words(DeviceScope scope) {
    if (scope == DeviceScope::Pcie) return "PCIe switch";
    return scope == DeviceScope::NumaNode ? "NUMA node" : "device";
}

// Devices of one group have one key; those of whom it is not known where they are have none.
std::string group_of(const DeviceUnit& unit, DeviceScope scope) {
    if (scope == DeviceScope::Device) return fmt::format("{}", unit.minor);
    if (scope == DeviceScope::Pcie) return unit.pcie;
    if (scope == DeviceScope::NumaNode) return unit.numa < 0 ? "" : fmt::format("{}", unit.numa);
    return "node";
}

// What there is of the device for the pod: a Restricted reservation's owners have only what it has left.
DeviceAmounts room_of(const NodeDevices& node, size_t place, const DeviceSources& sources, bool only_theirs) {
    DeviceAmounts room = only_theirs ? DeviceAmounts() : node.free[place];
    for (const auto reservation : sources.from) room.add(node.remaining(reservation, place));
    return room;
}

bool is_theirs(const NodeDevices& node, size_t place, const DeviceSources& sources) {
    return std::any_of(sources.from.begin(), sources.from.end(),
                       [&](auto reservation) { return !node.remaining(reservation, place).none(); });
}

std::optional<model::VirtualFunction> function_of(const NodeDevices& node, size_t place, const Selector& selector,
                                                  const DeviceSources& sources) {
    std::optional<model::VirtualFunction> best;
    for (const auto& group : node.unit(place).functions) {
        if (!selector.matches(group.labels)) continue;
        for (const auto& function : group.functions) {
            if (!node.function_free(place, function, sources.from)) continue;
            if (!best || std::tie(function.bus, function.minor) < std::tie(best->bus, best->minor)) best = function;
        }
    }
    return best;
}

// The switches on which somebody has a device of the type.
std::set<std::string> used_switches(const NodeDevices& node, DeviceType type) {
    std::set<std::string> out;
    for (size_t place = 0; place < node.unit_count(); ++place) {
        const DeviceUnit& unit = node.unit(place);
        if (unit.type == type && !unit.pcie.empty() && !node.used[place].none()) out.insert(unit.pcie);
    }
    return out;
}

// One node's devices as one demand sees them.
class Chooser {
public:
    Chooser(const DeviceDemand& demand, const NodeDevices& node, const DeviceSources& sources, DeviceOrder order)
        : demand_(demand), node_(node), sources_(sources), order_(order) {}

    DeviceChoice choose() {
        for (const DevicesWanted& wanted : demand_.types) {
            if (node_.closed[static_cast<size_t>(wanted.type)].fault != NodeDevices::Fault::None) {
                return {{}, fmt::format("node(s) had {} devices that nobody can account for", name_of(wanted.type))};
            }
        }
        for (const DevicesWanted& wanted : demand_.types) {
            Candidates chosen;
            std::string refusal = choose_of(wanted, chosen);
            if (!refusal.empty()) return {{}, std::move(refusal)};
            chosen_[static_cast<size_t>(wanted.type)] = std::move(chosen);
        }
        return {record(), ""};
    }

private:
    bool joined(DeviceType type) const {
        return std::find(demand_.joint.begin(), demand_.joint.end(), type) != demand_.joint.end();
    }
    bool leads(DeviceType type) const { return !demand_.joint.empty() && demand_.joint.front() == type; }

    bool only_theirs(DeviceType type) const { return sources_.restricted[static_cast<size_t>(type)]; }

    // By minor. `matching` counts those that the selector takes, healthy or not.
    Candidates candidates(const DevicesWanted& wanted, size_t& matching) const {
        Candidates out;
        const bool exclusive = wanted.exclusive == model::DeviceExclusive::Pcie;
        const auto avoided = exclusive ? used_switches(node_, wanted.type) : std::set<std::string>();
        const bool restricted = only_theirs(wanted.type);
        for (size_t place = 0; place < node_.unit_count(); ++place) {
            const DeviceUnit& unit = node_.unit(place);
            if (unit.type != wanted.type) continue;
            if (wanted.selector && !wanted.selector->matches(unit.labels)) continue;
            ++matching;
            const auto takes = wanted.of(unit);
            const DeviceAmounts room = room_of(node_, place, sources_, restricted);
            if (!unit.healthy || !takes || !takes->within(room) || avoided.contains(unit.pcie)) continue;
            Candidate candidate{place, *takes, is_theirs(node_, place, sources_),
                                wanted.type == DeviceType::Gpu ? room.ratio : room.core};
            if (wanted.functions) {
                candidate.function = function_of(node_, place, *wanted.functions, sources_);
                if (!candidate.function) continue;
            }
            out.push_back(candidate);
        }
        return out;
    }

    std::string choose_of(const DevicesWanted& wanted, Candidates& chosen) const {
        size_t matching = 0;
        Candidates all = candidates(wanted, matching);
        if (joined(wanted.type) && !leads(wanted.type)) return follow(wanted, std::move(all), chosen);
        if (wanted.of_all) {
            chosen = std::move(all);
            return chosen.empty() || chosen.size() < matching ? insufficient(wanted.type) : "";
        }
        const auto count = static_cast<size_t>(wanted.count);
        if (all.size() < count) return insufficient(wanted.type);
        if (leads(wanted.type) && demand_.same_pcie) {
            keep_where_others_are(all);
            if (all.size() < count) return std::string(kJoint);
        }
        if (wanted.type == DeviceType::Gpu && wanted.whole()) {
            bool decided = false;
            std::string refusal = by_partition(wanted, all, chosen, decided);
            if (decided) return refusal;
        }
        return by_group(wanted, std::move(all), chosen);
    }

    // Only the devices on whose switch there is one of each further type, too.
    void keep_where_others_are(Candidates& all) const {
        for (size_t i = 1; i < demand_.joint.size(); ++i) {
            size_t matching = 0;
            std::set<std::string> there;
            for (const auto& other : candidates(*demand_.find(demand_.joint[i]), matching)) {
                there.insert(node_.unit(other.place).pcie);
            }
            std::erase_if(all, [&](const Candidate& one) {
                const std::string& pcie = node_.unit(one.place).pcie;
                return pcie.empty() || !there.contains(pcie);
            });
        }
    }

    // Better ones first.
    void sort(Candidates& all) const {
        const int64_t sign = order_ == DeviceOrder::LeastAllocated ? -1 : 1;
        std::stable_sort(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
            return std::tuple(!a.theirs, sign * a.free, a.place) < std::tuple(!b.theirs, sign * b.free, b.place);
        });
    }

    // The narrowest scope that has a group with enough; of its groups the one with most of the reservations' devices,
    // then with the fewest to spare.
    std::string by_group(const DevicesWanted& wanted, Candidates all, Candidates& chosen) const {
        const auto count = static_cast<size_t>(wanted.count);
        if (count == 1) {
            sort(all);
            chosen.assign(all.begin(), all.begin() + 1);
            return {};
        }
        for (const DeviceScope scope :
             {DeviceScope::Device, DeviceScope::Pcie, DeviceScope::NumaNode, DeviceScope::Node}) {
            if (scope < wanted.scope) break;
            std::map<std::string, Candidates> groups;
            for (const Candidate& one : all) {
                if (auto key = group_of(node_.unit(one.place), scope); !key.empty()) groups[key].push_back(one);
            }
            const Candidates* best = nullptr;
            std::tuple<int64_t, size_t> least;
            for (const auto& [key, group] : groups) {
                if (group.size() < count) continue;
                const auto theirs =
                    std::count_if(group.begin(), group.end(), [](const auto& one) { return one.theirs; });
                const std::tuple rank(-std::min<int64_t>(theirs, wanted.count), group.size());
                if (best && rank >= least) continue;
                best = &group;
                least = rank;
            }
            if (!best) continue;
            Candidates group = *best;
            sort(group);
            chosen.assign(group.begin(), group.begin() + wanted.count);
            return {};
        }
        return fmt::format("node(s) had {} of {} {} free, but not on one {}", all.size(), total(wanted.type),
                           people(wanted.type, total(wanted.type)), place_in_words(wanted.scope));
    }

    size_t total(DeviceType type) const {
        size_t count = 0;
        for (size_t place = 0; place < node_.unit_count(); ++place) count += node_.unit(place).type == type ? 1 : 0;
        return count;
    }

    // How many further partitions stay whole; one of 8 GPUs is worth more than many of 4.
    int64_t intact_after(const std::vector<int32_t>& minors, const Candidates& all) const {
        static const std::map<size_t, int64_t> kWorth{{8, 10000}, {4, 100}, {2, 1}};
        int64_t sum = 0;
        for (const auto& [size, partitions] : node_.object->partitions) {
            const auto worth = kWorth.find(size);
            if (worth == kWorth.end()) continue;
            for (const auto& partition : partitions) {
                const bool intact = std::all_of(partition.minors.begin(), partition.minors.end(), [&](int32_t minor) {
                    return !std::binary_search(minors.begin(), minors.end(), minor) && find(all, minor) != nullptr;
                });
                sum += intact ? worth->second : 0;
            }
        }
        return sum;
    }

    const Candidate* find(const Candidates& all, int32_t minor) const {
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](const Candidate& one) { return node_.unit(one.place).minor == minor; });
        return found == all.end() ? nullptr : &*found;
    }

    bool on_one(const Candidates& members, DeviceScope scope) const {
        const std::string first = group_of(node_.unit(members.front().place), scope);
        return !first.empty() && std::all_of(members.begin(), members.end(), [&](const Candidate& one) {
            return group_of(node_.unit(one.place), scope) == first;
        });
    }

    // `decided`: it is settled by partitions, one way or the other.
    std::string by_partition(const DevicesWanted& wanted, const Candidates& all, Candidates& chosen,
                             bool& decided) const {
        const auto& table = node_.object->partitions;
        const bool must = node_.partitions_only() || demand_.best_partition_only || demand_.partition_bandwidth > 0;
        const auto of_size = table.find(static_cast<size_t>(wanted.count));
        decided = must;
        if (of_size == table.end()) return must ? std::string(kNoPartition) : "";
        int64_t highest = INT64_MIN;
        for (const auto& partition : of_size->second) highest = std::max(highest, partition.score);
        std::tuple<int64_t, int64_t, int64_t, std::vector<int32_t>> least;
        for (const auto& partition : of_size->second) {
            if (partition.bandwidth < demand_.partition_bandwidth) continue;
            if (demand_.best_partition_only && partition.score < highest) continue;
            Candidates members;
            for (const int32_t minor : partition.minors) {
                if (const Candidate* one = find(all, minor)) members.push_back(*one);
            }
            if (members.size() != partition.minors.size() || !on_one(members, wanted.scope)) continue;
            const auto theirs =
                std::count_if(members.begin(), members.end(), [](const auto& one) { return one.theirs; });
            std::tuple rank(-int64_t{theirs}, -partition.score, -intact_after(partition.minors, all), partition.minors);
            if (!chosen.empty() && rank >= least) continue;
            least = std::move(rank);
            chosen = std::move(members);
        }
        if (!chosen.empty()) {
            decided = true;
            return {};
        }
        return must ? std::string(kNoPartition) : "";
    }

    // After the first type of a joint allocation: on its switches, one each in turn; elsewhere only what is left over,
    // and with the scope SamePCIe nothing.
    std::string follow(const DevicesWanted& wanted, Candidates all, Candidates& chosen) const {
        std::map<std::string, Candidates> by_switch;
        for (const Candidate& first : chosen_[static_cast<size_t>(demand_.joint.front())]) {
            by_switch.try_emplace(node_.unit(first.place).pcie);
        }
        sort(all);
        Candidates elsewhere;
        for (const Candidate& one : all) {
            const auto found = by_switch.find(node_.unit(one.place).pcie);
            (found == by_switch.end() || found->first.empty() ? elsewhere : found->second).push_back(one);
        }
        auto count = static_cast<size_t>(wanted.count);
        if (demand_.same_pcie) count = std::max(count, by_switch.size());
        for (size_t turn = 0; chosen.size() < count && turn < all.size(); ++turn) {
            for (const auto& [pcie, group] : by_switch) {
                if (turn < group.size() && chosen.size() < count) chosen.push_back(group[turn]);
            }
        }
        if (demand_.same_pcie) {
            std::set<std::string> covered;
            for (const Candidate& one : chosen) covered.insert(node_.unit(one.place).pcie);
            return chosen.size() < count || covered.size() < by_switch.size() ? std::string(kJoint) : "";
        }
        for (size_t i = 0; i < elsewhere.size() && chosen.size() < count; ++i) chosen.push_back(elsewhere[i]);
        return chosen.size() < count ? insufficient(wanted.type) : "";
    }

    model::DeviceRecord record() const {
        model::DeviceRecord out;
        for (const Candidates& of_type : chosen_) {
            for (const Candidate& one : of_type) {
                const DeviceUnit& unit = node_.unit(one.place);
                model::DeviceShare& share = out.emplace_back();
                share = {unit.type, unit.minor, one.takes, unit.id, {}};
                if (one.function) share.functions.push_back(*one.function);
            }
        }
        std::sort(out.begin(), out.end(),
                  [](const auto& a, const auto& b) { return std::tie(a.type, a.minor) < std::tie(b.type, b.minor); });
        return out;
    }

    const DeviceDemand& demand_;
    const NodeDevices& node_;
    const DeviceSources& sources_;
    DeviceOrder order_;
    std::array<Candidates, model::kDeviceTypes> chosen_;
};

}  // namespace

DeviceChoice choose_devices(const DeviceDemand& demand, const NodeDevices* node, const DeviceSources& sources,
                            DeviceOrder order) {
    if (demand.empty()) return {};
    if (node == nullptr || node->object == nullptr) {
        // Whoever manages such GPUs without naming them gives them himself, where nobody has any by name.
        const bool by_others = (node == nullptr || !node->by_name) && demand.vendors_only;
        return {{}, by_others ? "" : std::string(kMissing)};
    }
    return Chooser(demand, *node, sources, order).choose();
}

namespace {

std::string device_text(const model::DeviceShare& share) {
    return fmt::format("{} {}", name_of(share.type), share.minor);
}

// Whether what is recorded of one device may be had.
std::string check_share(const DevicesWanted& wanted, const model::DeviceShare& share, const NodeDevices& node,
                        const DeviceSources& sources) {
    const DeviceUnit* unit = node.object->find(share.type, share.minor);
    if (unit == nullptr) return fmt::format("there is no {}", device_text(share));
    if (!unit->healthy) return fmt::format("{} is not healthy", device_text(share));
    const auto place = static_cast<size_t>(unit - node.object->units.data());
    const auto takes = wanted.of(*unit);
    if (!takes || *takes != share.amounts) {
        return fmt::format("the record of {} is not what the pod asks for", device_text(share));
    }
    const bool restricted = sources.restricted[static_cast<size_t>(share.type)];
    if (!share.amounts.within(room_of(node, place, sources, restricted))) {
        return fmt::format("{} has too little left for it", device_text(share));
    }
    for (const auto& function : share.functions) {
        const auto known = [&](const auto& group) {
            return std::find(group.functions.begin(), group.functions.end(), function) != group.functions.end();
        };
        if (std::none_of(unit->functions.begin(), unit->functions.end(), known)) {
            return fmt::format("{} has no virtual function {}", device_text(share), function.bus);
        }
        if (!node.function_free(place, function, sources.from)) {
            return fmt::format("virtual function {} of {} is taken", function.bus, device_text(share));
        }
    }
    return {};
}

}  // namespace

std::string check_devices(const DeviceDemand& demand, const model::DeviceRecord& record, const NodeDevices* node,
                          const DeviceSources& sources) {
    if (node == nullptr || node->object == nullptr) {
        const bool by_others = (node == nullptr || !node->by_name) && demand.vendors_only && record.empty();
        if (demand.empty() && record.empty()) return {};
        return by_others ? "" : "the node has no Device";
    }
    std::map<DeviceType, int32_t> counts;
    for (const model::DeviceShare& share : record) {
        const DevicesWanted* wanted = demand.find(share.type);
        if (wanted == nullptr) return fmt::format("it asks for no {} device", name_of(share.type));
        if (node->closed[static_cast<size_t>(share.type)].fault != NodeDevices::Fault::None) {
            return fmt::format("the {} devices of the node cannot be accounted for", name_of(share.type));
        }
        ++counts[share.type];
        if (auto wrong = check_share(*wanted, share, *node, sources); !wrong.empty()) return wrong;
    }
    for (const DevicesWanted& wanted : demand.types) {
        const int32_t had = counts[wanted.type];
        const auto& joint = demand.joint;
        const bool follows = !joint.empty() && std::find(joint.begin() + 1, joint.end(), wanted.type) != joint.end();
        // One on each of the switches, however few are asked for.
        const bool more = demand.same_pcie && follows && had > wanted.count;
        if (had == wanted.count || more || (wanted.of_all && had > 0)) continue;
        return fmt::format("its record names {} of {} {} devices", had, wanted.count, name_of(wanted.type));
    }
    return {};
}

}  // namespace berth::sched
