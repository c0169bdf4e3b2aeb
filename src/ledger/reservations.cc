// The half of the ledger that counts reservations.
//
// Who is charged to what is a pure function of what is known: the link a pod carries, and the reservation's uid, node,
// owners and phase. So events may come in any order, and a replay of the stored objects gives the same sums.
#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/saturating.h"
#include "ledger/ledger.h"
#include "model/allocated.h"

namespace berth::ledger {

ReservationIndex Ledger::find_reservation(std::string_view uid) const {
    const auto found = reservation_by_uid_.find(uid);
    return found == reservation_by_uid_.end() ? kNone : found->second;
}

Resources Ledger::remaining(ReservationIndex index) const {
    Resources rest;
    reservations_[index].allocatable.for_each([&](ResourceId id, int64_t) { rest.set(id, remaining(index, id)); });
    return rest;
}

// ---- the row's sums

void Ledger::recompute_charged(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    entry.charged.clear();
    for (const PodIndex owner : entry.owners) {
        pods_[owner].each_charge([&](ReservationIndex to, const Resources& amount) {
            if (to == index) entry.charged.add(amount);
        });
    }
    file(index);
}

// A port that a pod holds has left its reservation, so no port has two holders. Of one on all addresses the reservation
// keeps those that the pod did not take.
void Ledger::recompute_ports(Row row) {
    NodeEntry& node = nodes_[row];
    Ports ports;
    for (const PodIndex pod : node.pods) ports.add(pods_[pod].spec->ports);
    const std::vector<model::HostPort> taken = ports.held();
    for (const ReservationIndex index : node.reservations) {
        ReservationEntry& entry = reservations_[index];
        entry.ports.clear();
        for (const auto& port : entry.spec->ports) {
            const bool gone =
                std::any_of(taken.begin(), taken.end(), [&](const auto& held) { return covers(held, port); });
            if (!gone) entry.ports.push_back(port);
        }
        ports.add(entry.ports);
    }
    node.ports = std::move(ports);
}

bool Ledger::reserves_ports(Row row) const {
    const auto& all = nodes_[row].reservations;
    return std::any_of(all.begin(), all.end(),
                       [&](ReservationIndex index) { return !reservations_[index].spec->ports.empty(); });
}

// Enters the row's sums.
void Ledger::hold(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    nodes_[entry.row].reservations.push_back(index);
    volumes_.enter({true, index}, entry.row, entry.spec);
    show_near(index);
    change_sums(entry, 1);
    settle_sums(entry.row);
    if (!entry.spec->ports.empty()) recompute_ports(entry.row);
    touch_roster(entry.row);
}

// Leaves the row's sums.
void Ledger::release(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    terms_->hide(index);
    const bool ports = !entry.spec->ports.empty();
    std::erase(nodes_[entry.row].reservations, index);
    volumes_.leave({true, index}, entry.row);
    change_sums(entry, -1);
    settle_sums(entry.row);
    if (ports) recompute_ports(entry.row);
    entry.ports.clear();
    touch_roster(entry.row);
}

void Ledger::touch_roster(Row row) {
    nodes_[row].roster = ++rosters_;
    changes_.touch(row);
}

// ---- links

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

bool Ledger::owns(PodIndex index, const model::Reservation& reservation) const {
    const PodEntry& pod = pods_[index];
    const std::string uid = pod.uid.text();
    const model::PodIdentity identity{pod.ns(), pod.name, uid, &pod.spec->labels, &pod.linked->owners};
    return std::any_of(reservation.owners.begin(), reservation.owners.end(),
                       [&](const auto& owner) { return model::matches(owner, identity); });
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

Resources Ledger::missing(const Resources& requests, const model::Links& links, Row row) const {
    Resources from_node;
    for (const auto& [uid, amount] : split(requests, links)) {
        const ReservationIndex found = find_reservation(uid);
        const bool pays = found != kNone && reservations_[found].live && reservations_[found].row == row;
        amount.for_each([&](ResourceId id, int64_t part) {
            const int64_t rest = part - (pays ? std::min(part, remaining(found, id)) : 0);
            from_node.set(id, base::saturating_add(from_node.get(id), rest));
        });
    }
    Resources out;
    from_node.for_each([&](ResourceId id, int64_t amount) {
        if (amount > 0 && amount > free(row, id)) out.set(id, base::saturating_subtract(amount, free(row, id)));
    });
    return out;
}

// What the links mean now: they count while the reservation is live on the pod's node and the pod is its owner.
Charges Ledger::resolve(PodIndex index) const {
    const PodEntry& pod = pods_[index];
    Charges charges;
    if (!pod.linked || pod.row == kNoRow) return charges;
    for (auto& [uid, amount] : split(pods_[index].spec->requests, pods_[index].linked->links)) {
        const ReservationIndex found = find_reservation(uid);
        if (found == kNone || !reservations_[found].live || reservations_[found].row != pod.row) continue;
        if (owns(index, *reservations_[found].object)) charges.push_back({found, std::move(amount)});
    }
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

// ---- their states

// Whether an owner has been bound, and not only assumed.
bool Ledger::was_used(ReservationIndex index) const {
    const ReservationEntry& entry = reservations_[index];
    return std::any_of(entry.owners.begin(), entry.owners.end(),
                       [&](PodIndex owner) { return !pods_[owner].assumed; }) ||
           ended_.had(*entry.object, entry.node);
}

// Brings the hold in line with what is known of the reservation.
void Ledger::refresh(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    entry.spent = entry.spent || (entry.live && entry.once && was_used(index));
    const bool live = entry.placed && !entry.finished && !model::is_final(entry.object->phase);
    const Row row = live ? row_of(entry.node) : kNoRow;
    strand(index, live && row == kNoRow);
    if (live == entry.live && row == entry.row && entry.reserved == entry.allocatable) return file(index);
    const std::string uid = entry.object->meta.uid;
    if (entry.row != kNoRow) {
        entry.live = false;
        relink(uid);
        release(index);
    }
    entry.live = live;
    entry.row = row;
    entry.allocatable = entry.reserved;
    if (row != kNoRow) {
        hold(index);
        relink(uid);
    }
    file(index);
    if (entry.live && entry.once && !entry.spent && was_used(index)) refresh(index);
}

// Remembers, or forgets, that it waits for its node to appear. It holds its claims meanwhile.
void Ledger::strand(ReservationIndex index, bool waits) {
    const std::string& node = reservations_[index].node;
    volumes_.leave({true, index}, kNoRow);
    if (const auto found = stranded_.find(node); found != stranded_.end()) {
        std::erase(found->second, index);
        if (found->second.empty()) stranded_.erase(found);
    }
    if (!waits) return;
    stranded_[node].push_back(index);
    volumes_.enter({true, index}, kNoRow, reservations_[index].spec);
}

// Keeps those that somebody might draw from in the index. One that is only for one pod and was assumed for it stays
// there until that pod is bound: it may be given back.
void Ledger::file(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    const bool listed = entry.live && entry.row != kNoRow && !entry.waiting && entry.usable && !entry.spent;
    entry.open = listed && (!entry.once || entry.owners.empty());
    if (listed == entry.filed) return;
    entry.filed = listed;
    if (listed) {
        owner_index_.add(index, entry.object->owners);
    } else {
        owner_index_.remove(index);
    }
}

void Ledger::finish(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    entry.finished = true;
    entry.finished_at = entry.object->meta.revision;
    refresh(index);
}

void Ledger::assume_reservation(ReservationIndex index, Row row, bool waiting) {
    ReservationEntry& entry = reservations_[index];
    CHECK(!entry.live);
    entry.placed = true;
    entry.waiting = waiting;
    entry.assumed = true;
    entry.node = name(row);
    entry.reserved = entry.spec->requests;
    refresh(index);
}

void Ledger::unassume_reservation(ReservationIndex index) {
    ReservationEntry& entry = reservations_[index];
    if (!entry.assumed) return;
    entry.assumed = false;
    entry.placed = false;
    refresh(index);
    entry.node.clear();
}

ReservationIndex Ledger::new_reservation() {
    if (free_reservations_.empty()) {
        reservations_.emplace_back();
        return static_cast<ReservationIndex>(reservations_.size() - 1);
    }
    const ReservationIndex index = free_reservations_.back();
    free_reservations_.pop_back();
    return index;
}

void Ledger::put(std::shared_ptr<const model::Reservation> reservation) {
    ReservationIndex index = find_reservation(reservation->meta.uid);
    if (index == kNone) {
        index = new_reservation();
        reservation_by_uid_.emplace(reservation->meta.uid, index);
    } else if (reservation->meta.revision < reservations_[index].object->meta.revision) {
        return;
    }
    ReservationEntry& entry = reservations_[index];
    if (entry.filed) {
        owner_index_.remove(index);
        entry.filed = false;
    }
    reshape(index, std::move(reservation));
    const auto& object = *entry.object;
    if (object.meta.revision > entry.finished_at) entry.finished = false;
    strand(index, false);
    if (!object.node.empty()) entry.node = object.node;
    if (object.live() && !object.node.empty()) {
        entry.assumed = false;
        entry.placed = true;
        entry.waiting = object.phase == model::ReservationPhase::Waiting;
        entry.reserved = object.allocatable.empty() ? object.spec->requests : object.allocatable;
        entry.reserved.set(model::kPods, 1);
    }
    relink(object.meta.uid);
    refresh(index);
    if (entry.row != kNoRow) touch_roster(entry.row);  // who may draw from it may have changed
}

// What it holds by its spec leaves the row with the old one, and comes back with the new one.
void Ledger::reshape(ReservationIndex index, std::shared_ptr<const model::Reservation> next) {
    ReservationEntry& entry = reservations_[index];
    const bool other = entry.row != kNoRow && *entry.spec != *next->spec;
    if (other) {
        volumes_.leave({true, index}, entry.row);
        terms_->hide(index);
    }
    entry.object = std::move(next);
    entry.once = entry.object->allocate_once;
    entry.usable = entry.object->fault.empty() && !entry.object->unschedulable && !entry.object->meta.deleted;
    entry.holds_back = !entry.object->held_back.empty();
    entry.policy = entry.object->policy;
    entry.spec = entry.object->spec;
    entry.scoring_cpu = entry.spec->scoring_cpu_milli;
    entry.scoring_memory = entry.spec->scoring_memory;
    if (!other) return;
    rescore(entry);
    volumes_.enter({true, index}, entry.row, entry.spec);
    show_near(index);
    recompute_ports(entry.row);
}

void Ledger::remove_reservation(std::string_view uid) {
    const ReservationIndex index = find_reservation(uid);
    if (index == kNone) return;
    reservations_[index].placed = false;
    refresh(index);
    if (reservations_[index].filed) owner_index_.remove(index);
    reservations_[index] = ReservationEntry();
    reservation_by_uid_.erase(uid);
    free_reservations_.push_back(index);
}

// ---- questions

std::vector<PodIndex> Ledger::owners_of(ReservationIndex index) const {
    const auto& object = *reservations_[index].object;
    const auto found = linked_.find(object.meta.uid);
    std::vector<PodIndex> owners;
    for (const PodIndex pod : reservations_[index].owners) {
        if (pods_[pod].implied) owners.push_back(pod);
    }
    if (found != linked_.end()) {
        for (const PodIndex pod : found->second) {
            if (node_of(pod) == reservations_[index].node && owns(pod, object)) owners.push_back(pod);
        }
    }
    std::sort(owners.begin(), owners.end(),
              [&](PodIndex a, PodIndex b) { return pods_[a].uid.text() < pods_[b].uid.text(); });
    return owners;
}

std::vector<ReservationIndex> Ledger::waiting(Row row) const {
    std::vector<ReservationIndex> queue;
    for (const ReservationIndex index : nodes_[row].reservations) {
        if (reservations_[index].waiting) queue.push_back(index);
    }
    const auto rank = [&](ReservationIndex index) {
        const auto& object = *reservations_[index].object;
        return std::tuple(-static_cast<int64_t>(object.spec->priority), object.meta.created,
                          std::string_view(object.meta.name));
    };
    std::sort(queue.begin(), queue.end(), [&](ReservationIndex a, ReservationIndex b) { return rank(a) < rank(b); });
    return queue;
}

// E.g. 8 cpu, a pod of 4, R of 4, W of 4 waits: the row lacks 4, and R's owner still has its 4.
int64_t Ledger::waived_of_lack(Row row, ResourceId id) const {
    const int64_t lack = -free(row, id);
    int64_t held = 0;
    for (const ReservationIndex index : nodes_[row].reservations) {
        const ReservationEntry& entry = reservations_[index];
        if (entry.waiting) held = base::saturating_add(held, entry.allocatable.get(id));
    }
    return std::min(lack, held);
}

// E.g. 16 cpu, pods use 12, W1 of 4 and W2 of 4 wait: W1 lacks nothing, W2 lacks 4.
Resources Ledger::shortage(ReservationIndex index) const {
    const ReservationEntry& entry = reservations_[index];
    Resources later;
    const auto queue = waiting(entry.row);
    const auto self = std::find(queue.begin(), queue.end(), index);
    for (auto at = self == queue.end() ? self : self + 1; at != queue.end(); ++at) {
        later.add(reservations_[*at].allocatable);
    }
    Resources missing;
    entry.allocatable.for_each([&](ResourceId id, int64_t amount) {
        const int64_t lacks = -free(entry.row, id) - later.get(id);
        if (amount > 0 && lacks > 0) missing.set(id, lacks);
    });
    return missing;
}

}  // namespace berth::ledger
