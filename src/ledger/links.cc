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

bool Ledger::is_owner(PodIndex index, const model::Reservation& reservation) const {
    const PodEntry& pod = pods_[index];
    const std::string uid = pod.uid.text();
    return model::owned_by(reservation,
                           model::PodIdentity{pod.ns(), pod.name, uid, &pod.spec->labels, &pod.linked->owners});
}

// What of a request each of the named reservations is charged: a draw is at most what the request has left, and the
// nominated one, which comes first, is charged the rest.
std::vector<std::pair<std::string_view, Resources>> Ledger::split(Resources rest, const model::Links& links) {
    std::vector<std::pair<std::string_view, Resources>> parts;
    for (const auto& draw : links.draws) {
        Resources amount;
        draw.amount.for_each([&](ResourceId id, int64_t wanted) {
            const int64_t part = std::min(wanted, rest.get(id));
            if (part > 0 && id != model::kPods) amount.set(id, part);
        });
        rest.subtract(amount);
        parts.emplace_back(draw.uid, std::move(amount));
    }
    if (const auto& allocated = links.allocated) parts.insert(parts.begin(), {allocated->uid, std::move(rest)});
    return parts;
}

Charges Ledger::charges_of(const Resources& requests, const model::Links& links, Row row) const {
    Charges charges;
    for (auto& [uid, amount] : split(requests, links)) {
        const ReservationIndex found = find_reservation(uid);
        if (found == kNone || !reservations_[found].holds_room() || reservations_[found].row != row) continue;
        charges.push_back({found, std::move(amount)});
    }
    return charges;
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

Resources Ledger::drawn(PodIndex index, ReservationIndex from) const {
    Resources sum;
    if (pods_[index].implied) {
        pods_[index].each_charge([&](ReservationIndex to, const Resources& amount) {
            if (to == from) sum.add(amount);
        });
        return sum;
    }
    if (!pods_[index].linked) return sum;
    for (const auto& [uid, amount] : split(pods_[index].spec->requests, pods_[index].linked->links)) {
        if (uid == reservations_[from].object->meta.uid) sum.add(amount);
    }
    return sum;
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
