// Which ones of a node's parts somebody has: the half of the ledger that tells those who count them.
#include "ledger/which.h"

#include <fmt/format.h>

#include "ledger/ledger.h"
#include "model/device_request.h"
#include "model/node_reservation.h"

namespace berth::ledger {
namespace {

// Which devices somebody has, for whoever counts them.
NodeDevices::Member device_member(bool reservation, uint32_t index, const model::PodSpec& spec, const WhichPtr& which) {
    NodeDevices::Member out;
    out.reservation = reservation;
    out.index = index;
    if (which && !which->devices.empty()) {
        out.record = std::shared_ptr<const model::DeviceRecord>(which, &which->devices);
    }
    out.unreadable = which && !which->device_fault.empty();
    if (!spec.devices.demand) return out;
    for (const auto& wanted : spec.devices.demand->types) out.asks[static_cast<size_t>(wanted.type)] = true;
    return out;
}

// What does not change while it stands on its row.
bool has_cores(const WhichPtr& which) {
    return which && which->names_cores();
}

bool has_devices(const model::PodSpec& spec, const WhichPtr& which) {
    return spec.devices.demand || (which && which->names_devices());
}

}  // namespace

WhichPtr which_of(const model::Pod& pod) {
    model::Which which = model::read_which(pod.meta.annotations);
    return which.empty() ? nullptr : std::make_shared<const model::Which>(std::move(which));
}

void Ledger::put(std::shared_ptr<const model::NodeTopology> topology) {
    const std::string name = topology->meta.name;
    cores_.put(std::move(topology));
    const Row row = row_of(name);
    if (row == kNoRow) return;
    cores_.see(row, node(row));
    changes_.touch(row);
}

void Ledger::remove_topology(std::string_view name, std::string_view uid) {
    if (!cores_.remove(name, uid)) return;
    const Row row = row_of(name);
    if (row == kNoRow) return;
    cores_.see(row, node(row));
    changes_.touch(row);
}

void Ledger::put(std::shared_ptr<const model::Device> devices) {
    const std::string name = devices->meta.name;
    if (devices_.put(std::move(devices))) show_devices(name);
}

void Ledger::remove_devices(std::string_view node, std::string_view uid) {
    if (devices_.remove(node, uid)) show_devices(node);
}

void Ledger::show_devices(std::string_view node) {
    const Row row = row_of(node);
    if (row == kNoRow) return;
    set_allocatable(row, allocatable_of(row));
    see_devices(row);
    changes_.touch(row);
}

void Ledger::see_devices(Row row) {
    const model::Node& node = *nodes_[row].node;
    devices_.see(row, node.meta.name, model::honors_partitions(node.meta.labels));
}

Resources Ledger::allocatable_of(Row row) const {
    Resources out = model::view_of(*nodes_[row].node).allocatable;
    const model::Device* devices = devices_.known(name(row));
    if (devices == nullptr) return out;
    devices->sums().for_each([&](ResourceId id, int64_t amount) {
        if (!out.has(id)) out.set(id, amount);
    });
    return out;
}

void Ledger::enter_parts(PodIndex index) {
    const PodEntry& pod = pods_[index];
    const bool devices = has_devices(*pod.spec, pod.which);
    if (!devices && !has_cores(pod.which)) return;
    std::vector<ReservationIndex> from;
    pod.each_charge([&](ReservationIndex payer, const Resources&) { from.push_back(payer); });
    const std::string order = from.size() > 1 ? pod.uid.text() : "";
    if (devices) {
        NodeDevices::Member member = device_member(false, index, *pod.spec, pod.which);
        member.from = from;
        member.order = order;
        devices_.enter(pod.row, std::move(member));
    }
    if (has_cores(pod.which)) {
        cores_.enter(pod.row, {false, index, pod.which, pod.spec->cores.exclusive, std::move(from), order});
    }
}

void Ledger::leave_parts(PodIndex index) {
    const PodEntry& pod = pods_[index];
    if (has_devices(*pod.spec, pod.which)) devices_.leave(pod.row, false, index);
    if (has_cores(pod.which)) cores_.leave(pod.row, false, index);
}

// Those that wait for room have no devices yet: which ones is decided when there are enough.
void Ledger::enter_parts_of(ReservationIndex index) {
    const ReservationEntry& entry = reservations_[index];
    if (has_cores(entry.which)) {
        cores_.enter(entry.row, {true, index, entry.which, entry.spec->cores.exclusive, {}});
    }
    if (!has_devices(*entry.spec, entry.which)) return;
    NodeDevices::Member member = device_member(true, index, *entry.spec, entry.which);
    if (entry.waiting()) member.asks = {};
    devices_.enter(entry.row, std::move(member));
}

void Ledger::leave_parts_of(ReservationIndex index) {
    const ReservationEntry& entry = reservations_[index];
    if (has_cores(entry.which)) cores_.leave(entry.row, true, index);
    devices_.leave(entry.row, true, index);
}

// The stored pod decides, not what we assumed.
void Ledger::see_which(PodIndex index, const model::Pod& pod) {
    WhichPtr which = which_of(pod);
    if (same_which(which, pods_[index].which)) return;
    const bool placed = pods_[index].row != kNoRow;
    if (placed) leave_row(index);
    pods_[index].which = std::move(which);
    if (placed) place(index);
}

std::string View::core_fault(Row row) const {
    const NodeCores* cores = cores_.at(row);
    if (cores == nullptr || cores->fault == NodeCores::Fault::None) return "";
    using Fault = NodeCores::Fault;
    if (cores->fault == Fault::Topology) return cores->object->fault;
    if (cores->fault == Fault::Rules) return cores->rules.fault;
    const auto& member = cores->members[cores->fault_member];
    const std::string who = member.reservation
                                ? fmt::format("reservation {}", reservations_[member.index].object->meta.name)
                                : fmt::format("pod {}/{}", pods_[member.index].ns(), pods_[member.index].name.view());
    if (cores->fault == Fault::Unreadable) return fmt::format("{}: {}", who, member.which->fault);
    if (cores->fault == Fault::Beyond) return fmt::format("{} has CPU {}, which is not there", who, cores->fault_cpu);
    return fmt::format("{} has CPU {}, which another has, too", who, cores->fault_cpu);
}

std::string View::device_fault(Row row, model::DeviceType type) const {
    const NodeDevices* devices = devices_.at(row);
    const auto closed = devices ? devices->closed[static_cast<size_t>(type)] : NodeDevices::Closed();
    using Fault = NodeDevices::Fault;
    if (closed.fault == Fault::None) return "";
    const auto unit = fmt::format("{} {}", name_of(type), closed.minor);
    if (closed.fault == Fault::Overfull) return fmt::format("records name more of {} than there is", unit);
    const auto& member = devices->members[closed.member];
    const std::string who = member.reservation
                                ? fmt::format("reservation {}", reservations_[member.index].object->meta.name)
                                : fmt::format("pod {}/{}", pods_[member.index].ns(), pods_[member.index].name.view());
    if (closed.fault == Fault::Unsaid)
        return fmt::format("{} has {} devices, and nothing says which", who, name_of(type));
    if (closed.fault == Fault::Vanished) return fmt::format("{} has {}, which is not there", who, unit);
    const WhichPtr& which = member.reservation ? reservations_[member.index].which : pods_[member.index].which;
    return fmt::format("{}: {}", who, which->device_fault);
}

}  // namespace berth::ledger
