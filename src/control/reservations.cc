#include "control/reservations.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/allocated.h"
#include "model/node_reservation.h"
#include "model/reservation_rules.h"
#include "model/reservation_status.h"
#include "model/times.h"

namespace berth::control {
namespace {

using ledger::Ledger;
using ledger::ReservationIndex;
using model::Reservation;
using model::ReservationPhase;
using model::ReservationStatus;
using model::Resources;

// One reservation and what is to become of it.
class Life {
public:
    Life(const ReservationPass& pass, ReservationIndex index)
        : pass_(pass), index_(index), entry_(pass.ledger.reservation(index)), object_(*entry_.object), next_(object_) {}

    void live_on() {
        sync_owners();
        const bool unseen = model::is_unseen(object_);
        if (model::is_final(next_.phase) && !unseen) return;
        if (entry_.used_up || unseen) {
            next_ = model::succeeded(std::move(next_), pass_.wall);
            return say_succeeded();
        }
        if (entry_.ended) return fail(why_ended());
        if (!model::holds_room(next_)) return;
        if (pass_.ledger.row_of(next_.node) == ledger::kNoRow) {
            return fail(fmt::format("node {} was deleted", next_.node));
        }
        next_.phase == ReservationPhase::Waiting ? wait() : judge_room();
    }

    // Final ones go once they have been final for long enough.
    bool is_over(Ages& ages) const {
        if (!model::is_final(object_.phase)) return false;
        const auto* ready = model::find_condition(object_, "Ready");
        // Not its transition: Ready may have been False before.
        const base::Time since = ready && ready->probed ? *ready->probed : object_.meta.created;
        return ages.of(object_.meta.uid + "/final", since) >= pass_.gc;
    }

    void report(Writes& out) {
        if (next_ == static_cast<const ReservationStatus&>(object_)) return;
        out.statuses.push_back({target(), std::move(next_)});
        out.events.insert(out.events.end(), events_.begin(), events_.end());
    }

    Target target() const { return {"Reservation", object_.meta.name, object_.meta.uid, object_.meta.revision}; }

private:
    // allocated = what the owners hold of what was reserved: limited to its names and amounts.
    void sync_owners() {
        if (next_.node.empty()) return;
        std::vector<model::PodRef> owners;
        Resources held;
        for (const auto index : pass_.ledger.owners_of(index_)) {
            const auto& pod = pass_.ledger.pod(index);
            if (pod.assumed) continue;
            owners.push_back({std::string(pod.ns()), std::string(pod.name.view()), pod.uid.text()});
            held.add(pass_.ledger.drawn(index, index_));
        }
        // A claim is the scheduler's, who knows whether it binds the pod; and the bind of one that has just been ended
        // may not have been seen yet.
        const bool claim = model::is_claimed(object_) || model::is_unseen(object_);
        owners_ = std::move(owners);
        if (!claim || !owners_.empty()) next_.current_owners = owners_;
        next_.allocated.clear();
        next_.allocatable.for_each([&](model::ResourceId id, int64_t amount) {
            const int64_t part = std::min(amount, held.get(id));
            if (id != model::kPods && part > 0) next_.allocated.set(id, part);
        });
    }

    std::string why_ended() const {
        if (object_.expires) return fmt::format("expired at {}", model::time_text(*object_.expires));
        return fmt::format("ttl {} has passed", model::duration_text(*model::end_of(object_) - object_.meta.created));
    }

    void fail(const std::string& why) {
        next_ = model::expired(std::move(next_), why, pass_.wall);
        next_.current_owners = owners_;
        say(true, "Expired", why);
    }

    void wait() {
        const Resources missing = pass_.ledger.shortage(index_);
        if (pass_.ledger.has_its_room(index_)) {
            if (!pass_.opens) return;
            next_ = model::available(std::move(next_), pass_.wall);
            return say(false, "Available", fmt::format("node {} has room now", next_.node));
        }
        next_ = model::placed_waiting(std::move(next_), object_.node, object_.allocatable, missing, pass_.wall);
    }

    // Others may have put pods there: then nothing new is placed until it fits again.
    void judge_room() {
        const ledger::Row row = entry_.row;
        if (row == ledger::kNoRow) return;
        Resources waiting;
        for (const auto index : pass_.ledger.waiting(row)) waiting.add(pass_.ledger.reservation(index).allocatable);
        Resources over;
        entry_.allocatable.for_each([&](model::ResourceId id, int64_t) {
            const int64_t excess = -pass_.ledger.free(row, id) - waiting.get(id);
            if (excess > 0) over.set(id, excess);
        });
        const std::string message =
            over.empty() ? "" : fmt::format("node {} holds {} more than it has", next_.node, over.text());
        if (!model::find_condition(next_, "Ready")) return;
        const auto before = next_.conditions;
        model::set_condition(next_, "Ready", true, "Available", message, pass_.wall);
        if (!over.empty() && next_.conditions != before) say(true, "NodeTooFull", message);
    }

    void say_succeeded() { say(false, "Succeeded", "an owner has been bound, what it does not use is free again"); }

    void say(bool warning, std::string_view reason, std::string message) {
        events_.push_back(
            {"Reservation", "", object_.meta.name, object_.meta.uid, warning, std::string(reason), std::move(message)});
    }

    const ReservationPass& pass_;
    ReservationIndex index_;
    const ledger::ReservationEntry& entry_;
    const Reservation& object_;
    ReservationStatus next_;
    std::vector<model::PodRef> owners_;  // bound ones
    std::vector<Event> events_;
};

void judge(const ReservationPass& pass, Ages& ages, const std::vector<ReservationIndex>& these, Writes& out) {
    for (const ReservationIndex index : these) {
        Life life(pass, index);
        if (life.is_over(ages)) {
            out.deletions.push_back(life.target());
        } else {
            life.live_on();
            life.report(out);
        }
    }
}

}  // namespace

Writes reconcile_reservations(const ReservationPass& pass, Ages& ages) {
    std::vector<ReservationIndex> all;
    for (const auto& [uid, index] : pass.ledger.reservations()) all.push_back(index);
    std::sort(all.begin(), all.end(), [&](ReservationIndex a, ReservationIndex b) {
        return pass.ledger.reservation(a).object->meta.name < pass.ledger.reservation(b).object->meta.name;
    });
    Writes out;
    pass.ledger.pass_time(pass.wall, pass.now);
    ages.begin(pass.wall, pass.now);
    judge(pass, ages, all, out);
    ages.end();
    return out;
}

Writes reconcile_these(const ReservationPass& pass, Ages& ages, const std::vector<ReservationIndex>& these) {
    Writes out;
    pass.ledger.pass_time(pass.wall, pass.now);
    ages.begin(pass.wall, pass.now);
    judge(pass, ages, these, out);
    return out;
}

std::vector<Event> judge_links(const model::Pod& pod) {
    std::vector<Event> events;
    if (!pod.node.empty()) {
        const auto links = model::read_links(pod.meta.annotations);
        if (!links && !pod.terminal()) {
            events.push_back({"Pod", pod.meta.ns, pod.meta.name, pod.meta.uid, true, "AnnotationUnreadable",
                              fmt::format("{}; until it can be read nobody may draw from reservations on node {}",
                                          links.error().message, pod.node)});
            // As kubelets name the node that an event is about.
            events.push_back({"Node", "", pod.node, pod.node, true, "ReservationsClosed",
                              fmt::format("nobody may draw from reservations here until pod {} can be read: {}",
                                          pod.meta.full_name(), links.error().message)});
        }
        return events;
    }
    for (const auto key : {model::kReservationAllocated, model::kReservationDraws}) {
        const std::string* text = pod.meta.annotations.find(key);
        if (text == nullptr || text->empty()) continue;
        events.push_back({"Pod", pod.meta.ns, pod.meta.name, pod.meta.uid, true, "AnnotationIgnored",
                          fmt::format("annotation \"{}\" means nothing on a pod that is not bound", key)});
    }
    return events;
}

Writes reconcile_node_reservation(const model::Node& node) {
    Writes out;
    const model::NodeView view = model::view_of(node);
    const Target target{"Node", node.meta.name, node.meta.uid, node.meta.revision};
    const std::string* applied = node.meta.annotations.find(model::kReservationApplied);
    if (view.applied != (applied ? *applied : "")) {
        out.annotations.push_back({target, std::string(model::kReservationApplied), view.applied});
    }
    std::string complaint;
    for (const auto& fault : view.faults) complaint += (complaint.empty() ? "" : "; ") + fault.message;
    if (complaint == node.complaint) return out;
    out.conditions.push_back(
        {target, std::string(model::kReservationInvalid), complaint.empty() ? "Valid" : "Invalid", complaint});
    if (!complaint.empty()) {
        out.events.push_back(
            {"Node", "", node.meta.name, node.meta.uid, true, std::string(model::kReservationInvalid), complaint});
    }
    return out;
}

}  // namespace berth::control
