// The half of the scheduler that keeps room for preempting pods: first a reservation for the pod waits on the node,
// then the victims go, then it is available, and the pod lands in it.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "model/preemption_hold.h"
#include "model/reservation_status.h"
#include "sched/credit.h"
#include "sched/kept_parts.h"
#include "sched/scheduler.h"
#include "sched/victims.h"
#include "sched/which.h"

namespace berth::sched {
namespace {

// A room that was made shows in the feed long before; one that never shows was deleted at once by somebody.
constexpr base::Duration kShowsWithin = std::chrono::seconds(30);

// What a room that waits says by itself: whether it has its amounts and ports.
constexpr std::array kOfHeldRoom{kFit, PluginId::NodeNUMAResource, PluginId::NodePorts};

}  // namespace

// The pod that it is a room for, if one of our profiles made it.
std::string_view Scheduler::our_room(const model::Reservation& reservation) const {
    return profiles_.contains(reservation.spec->scheduler_name) ? model::preemption_hold_owner(reservation) : "";
}

bool Scheduler::room_stands(std::string_view pod) const {
    const std::string* uid = preemption_holds_.of(pod);
    if (!uid) return false;
    const auto index = ledger_.find_reservation(*uid);
    return index != ledger::kNone && ledger_.reservation(index).holds_room();
}

// Where the pod draws from a reservation of the row, what it waits for is partly that reservation's: no other can hold
// it, and everybody yields to its nomination (see nominated.h). Which cores others leave is not said before they have
// gone: there, too, its nomination must do.
bool Scheduler::may_hold_room(const Ask& ask, Row row) const {
    return options_.holds_rooms && !ask.credit(row) && !wants_parts(ask, ledger_, row);
}

// A room goes where its pod would go if those that are to make place had gone. Until they have it waits there, whether
// they hold amounts, a port or a claim, or cannot be near the pod. One whose pod can draw there by now has no place.
Decision Scheduler::decide_room(const model::Reservation& room) {
    Decision decision{{{}, {}, {}, ledger::kNoRow, Strikes(std::vector<uint8_t>())}, {}, {}, {}, false, {}};
    Attempt* attempt = find(our_room(room));
    const Row row = ledger_.row_of(room.spec->node_name);
    if (!attempt || attempt->placed() || row == ledger::kNoRow) return decision;
    const model::Pod& pod = attempt->pod;
    const Profile& profile = profiles_.find(pod.spec->scheduler_name)->second;
    if (ask_on(pod, ledger_, row).credit(row)) return decision;
    const auto filters = [&] {
        return filter(ask_for(pod, ledger_, &looks_), ledger_, profile, nominated_, row, row + 1);
    };
    decision.waiting = !filters().open(row);
    if (decision.waiting) {
        decision.missing = missing_on(*room.spec, ledger_, row);
        Lifted lifted(ledger_);
        if (const auto* asked = attempt->demands<HoldAsked>()) lift(asked->evictions, row, lifted);
        decision.verdict.strikes = filters();
        if (!decision.verdict.strikes.open(row)) return decision;
    }
    decision.verdict.chosen = row;
    return decision;
}

// Whether the pod has a room on the way. One that cannot become available, since whoever should have gone did not, or
// that is available and still does not help, is given up.
bool Scheduler::waits_for_room(Attempt& attempt, base::Instant now, std::vector<Plan>& plans) {
    if (const auto* asked = attempt.demands<HoldAsked>(); asked && now < asked->at + kShowsWithin) return true;
    const std::string* uid = preemption_holds_.of(attempt.pod.meta.uid);
    if (!uid) return false;
    const auto index = ledger_.find_reservation(*uid);
    if (index == ledger::kNone) return false;
    const auto& entry = ledger_.reservation(index);
    if (model::is_final(entry.object->phase)) return false;
    if (!entry.ended && (!entry.holds_room() || entry.row == ledger::kNoRow || entry.assumed)) return true;
    if (!entry.ended && room_on_the_way(index, attempt.pod.spec->priority)) return true;
    if (auto rest = rest_of_victims(attempt, index); !rest.empty()) {
        for (auto& plan : evict(attempt, std::move(rest))) plans.push_back(std::move(plan));
        return true;
    }
    give_up_room(*entry.object, plans);
    return true;
}

// A scheduler before this one placed the room and died before everybody was told to go for it, or who was told did not
// hear. For whom they were to go is stored, who they were is not: those of whom the room still needs somebody's place,
// or who are in the pod's way there otherwise.
std::vector<EvictPod> Scheduler::rest_of_victims(const Attempt& attempt, ReservationIndex index) {
    const auto& entry = ledger_.reservation(index);
    if (evictions_.under_way(attempt.pod.meta.uid) || entry.ended || !entry.holds_room()) return {};
    const Profile& profile = profiles_.find(attempt.pod.spec->scheduler_name)->second;
    Ask ask = ask_for(attempt.pod, ledger_, &looks_);
    // Its own room, which may wait yet, is not in the way of its terms.
    if (const Credit* credit = ask.credit(entry.row); !credit || !credit->covers(index)) {
        ask.credits[entry.row].matched.push_back(index);
    }
    const auto found = victims_until(ask, ledger_, entry.row, [&] {
        return ledger_.has_its_room(index) &&
               filter(ask, ledger_, profile, entry.row, entry.row + 1, kOfHeldRoom).open(entry.row);
    });
    return found ? evictions_for(ask, *found) : std::vector<EvictPod>();
}

// Somebody is still going there, or nobody is in its way any more and its status will say so.
bool Scheduler::room_on_the_way(ReservationIndex index, int32_t priority) const {
    const auto& entry = ledger_.reservation(index);
    const auto& pods = ledger_.at(entry.row).pods;
    const bool going = std::any_of(pods.begin(), pods.end(), [&](ledger::PodIndex other) {
        return ledger_.pod(other).terminating && ledger_.pod(other).priority < priority;
    });
    return going || (entry.waiting() && ledger_.has_its_room(index));
}

void Scheduler::give_up_room(const model::Reservation& reservation, std::vector<Plan>& plans) {
    if (Attempt* attempt = find(model::preemption_hold_owner(reservation))) attempt->take_evictions();
    plans.emplace_back(DropRoom{reservation.meta.uid, reservation.meta.name});
}

// PreemptionHolds whose pod is gone or landed elsewhere are dropped, and those that failed or ended; used ones go by
// themselves.
void Scheduler::judge_rooms(base::Instant now, std::vector<Plan>& plans) {
    for (const auto& uid : preemption_holds_.take_due(now)) {
        const auto index = ledger_.find_reservation(uid);
        if (index == ledger::kNone) continue;
        const auto& entry = ledger_.reservation(index);
        if (entry.used_up || entry.object->phase == model::ReservationPhase::Succeeded || entry.object->meta.deleted) {
            continue;
        }
        const bool pending = attempts_.contains(our_room(*entry.object));
        const bool over = entry.ended || entry.object->phase == model::ReservationPhase::Failed;
        if (!pending || over) give_up_room(*entry.object, plans);
    }
}

void Scheduler::see_room(const model::Reservation& reservation, base::Instant now) {
    const std::string pod(our_room(reservation));
    if (pod.empty()) return;
    preemption_holds_.see(pod, reservation.meta.uid);
    Attempt* attempt = find(pod);
    if (attempt && model::holds_room(reservation)) end_nomination(*attempt, now);
}

// Binds that are on their way are known to us alone: so we say when the room is there that a reservation waits for.
// E.g. 4 cpu, a pod of 4 is being bound, R of 4 waits: the stored objects show an empty node. One at a time on a node:
// those that come before others are not counted against them.
void Scheduler::open_waiting(base::Time wall, std::vector<Plan>& plans) {
    const uint64_t changes = ledger_.changes().sequence();
    if (waiting_.empty() || std::exchange(looked_at_, changes) == changes) return;
    std::set<Row> busy;
    for (const auto& [uid, opening] : waiting_) {
        if (opening.under_way) busy.insert(ledger_.reservation(ledger_.find_reservation(uid)).row);
    }
    for (auto& [uid, opening] : waiting_) {
        const auto index = ledger_.find_reservation(uid);
        const auto& entry = ledger_.reservation(index);
        const auto& object = *entry.object;
        const bool waits = entry.waiting() && entry.row != ledger::kNoRow && opening.tried != object.meta.revision;
        if (!waits || entry.ended || object.meta.deleted || busy.contains(entry.row) || !ledger_.has_its_room(index))
            continue;
        auto status = model::available(object, wall);
        if (!name_parts(index, status)) continue;
        busy.insert(entry.row);
        opening = {object.meta.revision, true};
        plans.emplace_back(OpenReservation{uid, object.meta.name, object.meta.revision, std::move(status)});
    }
}

// While it waits it has amounts alone: which ones it gets is decided when there are enough. False: there are not. What
// an earlier try named came to nothing, and may not be there any more.
bool Scheduler::name_parts(ReservationIndex index, model::ReservationStatus& status) {
    const auto& entry = ledger_.reservation(index);
    if (entry.recorded && entry.object->which.empty()) ledger_.record(index, nullptr);
    if (!entry.recorded) {
        const Ask ask = ask_for(*entry.object);
        const KeptParts kept(ask, ledger_, entry.row, nominated_.before(ask, ledger_, entry.row));
        if (!finds_parts(ask, ledger_, entry.row, {})) return false;
        if (auto which = which_on(ask, ledger_, entry.row, {})) ledger_.record(index, std::move(which));
    }
    if (entry.recorded) status.which = *entry.recorded;
    return true;
}

// The room was made, or could not be: then a nomination must do.
std::vector<Plan> Scheduler::asked(const HoldRoom& hold, Outcome outcome, base::Instant now) {
    Attempt* attempt = find(hold.uid);
    if (!attempt || outcome == Outcome::Done) return {};
    if (outcome == Outcome::Refused) return evict(*attempt, attempt->take_evictions());
    attempt->take_evictions();
    retry(*attempt, now);
    return {};
}

// The room is held: those who are in it may go now.
std::vector<Plan> Scheduler::placed_room(std::string_view reservation) {
    const auto index = ledger_.find_reservation(reservation);
    if (index == ledger::kNone || !ledger_.reservation(index).holds_room()) return {};
    Attempt* attempt = find(our_room(*ledger_.reservation(index).object));
    return attempt ? evict(*attempt, attempt->take_evictions()) : std::vector<Plan>();
}

}  // namespace berth::sched
