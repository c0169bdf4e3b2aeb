// Which ones of a node's parts somebody has: the half of the ledger that tells those who count them.
#include "ledger/which.h"

#include <fmt/format.h>

#include "ledger/ledger.h"

namespace berth::ledger {

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

void Ledger::enter_parts(PodIndex index) {
    const PodEntry& pod = pods_[index];
    NodeCores::Member member{false, index, pod.which, pod.spec->cores.exclusive, {}};
    pod.each_charge([&](ReservationIndex from, const Resources&) { member.from.push_back(from); });
    cores_.enter(pod.row, std::move(member));
}

void Ledger::leave_parts(PodIndex index) {
    cores_.leave(pods_[index].row, false, index);
}

void Ledger::enter_parts_of(ReservationIndex index) {
    const ReservationEntry& entry = reservations_[index];
    cores_.enter(entry.row, {true, index, entry.which, entry.spec->cores.exclusive, {}});
}

void Ledger::leave_parts_of(ReservationIndex index) {
    cores_.leave(reservations_[index].row, true, index);
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

}  // namespace berth::ledger
