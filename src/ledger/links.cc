// The links from pods to reservations.
//
// Who is charged to what is a pure function of what is known: the link a pod carries, and the reservation's uid, node,
// owners and phase. So events may come in any order, and a replay of the stored objects gives the same sums.
#include <algorithm>

#include "ledger/ledger.h"
#include "model/allocated.h"

namespace berth::ledger {

void Ledger::set_links(PodIndex index, std::unique_ptr<Linked> linked) {
    PodEntry& pod = pods_[index];
    const auto each_uid = [](const Linked& link, auto f) {
        if (link.links.allocated) f(link.links.allocated->uid);
        for (const auto& draw : link.links.draws) f(draw.uid);
    };
    if (pod.linked) {
        each_uid(*pod.linked, [&](const std::string& uid) {
            const auto found = linked_.find(uid);
            if (found == linked_.end()) return;
            auto& pods = found->second;
            pods.erase(std::remove(pods.begin(), pods.end(), index), pods.end());
            if (pods.empty()) linked_.erase(found);
        });
    }
    if (linked) each_uid(*linked, [&](const std::string& uid) { linked_[uid].push_back(index); });
    pod.linked = std::move(linked);
}

std::unique_ptr<Linked> Ledger::read_linked(const model::Pod& pod) {
    auto links = model::read_links(pod.meta.annotations);
    if (links && links->empty()) return nullptr;
    auto linked = std::make_unique<Linked>();
    linked->owners = pod.meta.owners;
    if (links) {
        linked->links = std::move(*links);
    } else {
        linked->fault = links.error().message;
    }
    return linked;
}

// What we assumed is written out only when somebody asks for the links themselves: the charges say the same.
void Ledger::write_links(PodIndex index) {
    PodEntry& pod = pods_[index];
    if (!pod.implied) return;
    pod.implied = false;
    auto linked = pod.linked ? std::move(pod.linked) : std::make_unique<Linked>();
    pod.each_charge([&](ReservationIndex to, const Resources& amount) {
        const auto& meta = reservations_[to].object->meta;
        if (linked->links.allocated) {
            linked->links.draws.push_back({meta.name, meta.uid, amount});
        } else {
            linked->links.allocated = {meta.name, meta.uid};
        }
    });
    set_links(index, std::move(linked));
}

// What the links mean now: they count while the reservation holds room on the pod's node and the pod is its owner.
Charges Ledger::resolve(PodIndex index) const {
    const PodEntry& pod = pods_[index];
    if (!pod.linked || pod.row == kNoRow) return {};
    Charges charges = charges_of(pod.spec->requests, pod.linked->links, pod.row);
    const auto foreign = [&](const Charge& charge) {
        return !is_owner(index, *reservations_[charge.reservation].object);
    };
    charges.erase(std::remove_if(charges.begin(), charges.end(), foreign), charges.end());
    return charges;
}

void Ledger::recharge(PodIndex index) {
    const Charges charges = resolve(index);
    if (charges == pods_[index].charges()) return;
    leave_row(index);
    pods_[index].set_charges(charges);
    place(index);
}

void Ledger::relink(const std::string& uid) {
    if (const ReservationIndex index = find_reservation(uid); index != kNone) {
        for (const PodIndex owner : reservations_[index].owners) write_links(owner);
    }
    const auto found = linked_.find(uid);
    if (found == linked_.end()) return;
    const auto pods = found->second;
    for (const PodIndex pod : pods) recharge(pod);
}

// The stored pod decides, not what we assumed.
void Ledger::see_links(PodIndex index, const model::Pod& pod) {
    write_links(index);
    auto linked = read_linked(pod);
    const auto& known = pods_[index].linked;
    const bool same = linked && known ? linked->links == known->links && linked->fault == known->fault &&
                                            linked->owners == known->owners
                                      : linked == known;
    if (!same) {
        NodeEntry* node = pods_[index].row == kNoRow ? nullptr : &nodes_[pods_[index].row];
        if (node && known && !known->fault.empty()) --node->unreadable;
        set_links(index, std::move(linked));
        if (node && known && !known->fault.empty()) ++node->unreadable;
        if (node) changes_.touch(pods_[index].row);
        if (node) recharge(index);
    }
    spend(index);
}

// A bound owner uses an allocateOnce reservation up: nobody else may draw from it. What the owner does not need stays
// held until Succeeded is stored: should the owner vanish before, the stored reservation holds everything again.
void Ledger::spend(PodIndex index) {
    std::vector<ReservationIndex> used_up;
    pods_[index].each_charge([&](ReservationIndex to, const Resources&) {
        if (reservations_[to].once) used_up.push_back(to);
    });
    for (const ReservationIndex reservation : used_up) refresh(reservation);
}

void Ledger::put_ended(const model::Pod& pod) {
    const auto links = model::read_links(pod.meta.annotations);
    if (!links || links->empty() || pod.node.empty()) return;
    ended_.put(pod, *links);
    const auto used = [&](const std::string& uid) {
        if (const ReservationIndex index = find_reservation(uid); index != kNone) refresh(index);
    };
    if (links->allocated) used(links->allocated->uid);
    for (const auto& draw : links->draws) used(draw.uid);
}

}  // namespace berth::ledger
