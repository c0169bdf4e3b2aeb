#include "ledger/view.h"

#include <algorithm>

#include "base/check.h"
#include "base/saturating.h"
#include "ledger/spaces.h"

namespace berth::ledger {
namespace {

// What of the pod's request no reservation pays for.
Resources uncharged(const PodEntry& pod) {
    Resources rest = pod.spec->requests;
    pod.each_charge([&](ReservationIndex, const Resources& amount) { rest.subtract(amount); });
    return rest;
}

}  // namespace

Resources undrawn(const ReservationEntry& reservation) {
    Resources open;
    reservation.allocatable.for_each([&](ResourceId id, int64_t amount) {
        const int64_t left = amount - reservation.charged.get(id);
        if (left > 0 && id != model::kPods) open.set(id, left);
    });
    return open;
}

View::View() : terms_(std::make_unique<Terms>()) {}

View::~View() = default;

View::View(View&&) noexcept = default;

View& View::operator=(View&&) noexcept = default;

Row View::row_of(std::string_view node_name) const {
    const auto found = by_name_.find(node_name);
    return found == by_name_.end() ? kNoRow : *found;
}

Resources View::recomputed_use(Row row) const {
    Resources use;
    for (const PodIndex index : nodes_[row].pods) use.add(uncharged(pods_[index]));
    for (const ReservationIndex index : nodes_[row].reservations) {
        Resources held = reservations_[index].allocatable;
        held.max(reservations_[index].charged);
        use.add(held);
    }
    return use;
}

Spaces View::recomputed_spaces() const {
    Spaces out;
    if (spaces_) out.await_all(*spaces_);
    for (const PodIndex index : pod_by_uid_) {
        const PodEntry& pod = pods_[index];
        out.place(pod.uid, *pod.spec, pod.terminating, pod.assumed);
    }
    for (const auto& [uid, index] : reservation_by_uid_) {
        const ReservationEntry& entry = reservations_[index];
        if (entry.row != kNoRow) out.hold(index, *entry.object, undrawn(entry));
    }
    return out;
}

PodIndex View::find_pod(std::string_view uid) const {
    const auto found = pod_by_uid_.find(Uid(uid));
    return found == pod_by_uid_.end() ? kNone : *found;
}

std::string_view View::node_of(PodIndex index) const {
    const Row row = pods_[index].row;
    return row == kNoRow ? std::string_view(orphan_node_.at(index)) : name(row);
}

bool View::is_owner(PodIndex index, const model::Reservation& reservation) const {
    const PodEntry& pod = pods_[index];
    const std::string uid = pod.uid.text();
    return model::owned_by(reservation,
                           model::PodIdentity{pod.ns(), pod.name, uid, &pod.spec->labels, &pod.linked->owners});
}

// What of a request each of the named reservations is charged: a draw is at most what the request has left, and the
// nominated one, which comes first, is charged the rest.
std::vector<std::pair<std::string_view, Resources>> View::split(Resources rest, const model::Links& links) {
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

Charges View::charges_of(const Resources& requests, const model::Links& links, Row row) const {
    Charges charges;
    for (auto& [uid, amount] : split(requests, links)) {
        const ReservationIndex found = find_reservation(uid);
        if (found == kNone || !reservations_[found].holds_room() || reservations_[found].row != row) continue;
        charges.push_back({found, std::move(amount)});
    }
    return charges;
}

Resources View::drawn(PodIndex index, ReservationIndex from) const {
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

ReservationIndex View::find_reservation(std::string_view uid) const {
    const auto found = reservation_by_uid_.find(uid);
    return found == reservation_by_uid_.end() ? kNone : found->second;
}

Resources View::remaining(ReservationIndex index) const {
    Resources rest;
    reservations_[index].allocatable.for_each([&](ResourceId id, int64_t) { rest.set(id, remaining(index, id)); });
    return rest;
}

std::vector<PodIndex> View::owners_of(ReservationIndex index) const {
    const auto& object = *reservations_[index].object;
    const auto found = linked_.find(object.meta.uid);
    std::vector<PodIndex> owners;
    for (const PodIndex pod : reservations_[index].owners) {
        if (pods_[pod].implied) owners.push_back(pod);
    }
    if (found != linked_.end()) {
        for (const PodIndex pod : found->second) {
            if (node_of(pod) == reservations_[index].node && is_owner(pod, object)) owners.push_back(pod);
        }
    }
    std::sort(owners.begin(), owners.end(),
              [&](PodIndex a, PodIndex b) { return pods_[a].uid.text() < pods_[b].uid.text(); });
    return owners;
}

std::vector<ReservationIndex> View::waiting(Row row) const {
    std::vector<ReservationIndex> queue;
    for (const ReservationIndex index : nodes_[row].reservations) {
        if (reservations_[index].waiting()) queue.push_back(index);
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
int64_t View::waived_of_lack(Row row, ResourceId id) const {
    const int64_t lack = -free(row, id);
    int64_t held = 0;
    for (const ReservationIndex index : nodes_[row].reservations) {
        const ReservationEntry& entry = reservations_[index];
        if (entry.waiting()) held = base::saturating_add(held, entry.allocatable.get(id));
    }
    return std::min(lack, held);
}

// The row's equation with the pod in it. Of a reservation the pod takes at most what that has left of the part it is
// charged; the node must have the rest. On a row that is too full already the node has nothing, and what those that the
// pod draws from have left over must cover the excess: an owner may take as much as there really is. A slot comes from
// the nominated one; of the others those that the pod uses up give theirs back, reusable ones keep it. E.g. 4 cpu, 2
// slots; r1 2 cpu; r2 2 cpu, whose slot an owner has. A pod of 4 cpu lacks nothing when it is charged {r1: 2 cpu, its
// slot}, {r2: 2 cpu}; charged {r1: 4 cpu, its slot} it lacks 2 cpu.
Resources View::lacking(const Resources& requests, const Charges& charges, Row row) const {
    Resources out;
    requests.for_each([&](ResourceId id, int64_t amount) {
        int64_t from_node = amount;
        int64_t room = free(row, id);
        if (amount <= 0 || from_node <= room) return;
        int64_t left_over = 0;
        for (const Charge& charge : charges) {
            const int64_t left = remaining(charge.reservation, id);
            const int64_t taken = std::min(left, charge.amount.get(id));
            from_node -= taken;
            const bool back = id != model::kPods || reservations_[charge.reservation].once;
            if (back) left_over = base::saturating_add(left_over, left - taken);
        }
        if (!charges.empty()) room += waived(row, id);
        const int64_t need = room >= 0 || from_node > 0 ? from_node : -left_over;
        if (need > room) out.set(id, base::saturating_subtract(need, room));
    });
    return out;
}

// E.g. 16 cpu, pods use 12, W1 of 4 and W2 of 4 wait: W1 lacks nothing, W2 lacks 4.
Resources View::shortage(ReservationIndex index) const {
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

bool View::has_its_room(ReservationIndex index) const {
    const ReservationEntry& entry = reservations_[index];
    return shortage(index).empty() && entry.ports.size() == entry.spec->ports.size();
}

}  // namespace berth::ledger
