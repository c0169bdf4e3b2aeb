#include "control/reservations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "model/allocated.h"
#include "model/node_reservation.h"
#include "model/reservation_rules.h"
#include "model/reservation_status.h"
#include "model/times.h"

namespace berth::control {
namespace {

using ledger::ReservationIndex;
using ledger::View;
using model::Event;
using model::Reservation;
using model::ReservationPhase;
using model::ReservationStatus;
using model::Resources;

constexpr const char* kApiVersion = "scheduling.koordinator.sh/v1alpha1";

// One reservation and what is to become of it.
class Judgement {
public:
    Judgement(const ReservationOptions& options, const View& ledger, ReservationIndex index, base::Time wall,
              std::optional<base::Duration> final_for)
        : options_(options),
          ledger_(ledger),
          wall_(wall),
          final_for_(final_for),
          index_(index),
          entry_(ledger.reservation(index)),
          object_(*entry_.object),
          next_(object_) {}

    std::optional<ReservationChange> change() {
        const auto& meta = object_.meta;
        ReservationChange out{meta.name, meta.uid, meta.revision, std::nullopt, is_over(), std::nullopt};
        if (out.over) return out;
        live_on();
        if (next_ == static_cast<const ReservationStatus&>(object_)) return std::nullopt;
        out.status = std::move(next_);
        out.event = std::move(event_);
        return out;
    }

private:
    // Final ones go once they have been final for long enough.
    bool is_over() const { return final_for_ && *final_for_ >= options_.gc; }

    void live_on() {
        sync_owners();
        const bool unseen = model::is_unseen(object_);
        if (model::is_final(next_.phase) && !unseen) return;
        if (entry_.used_up || unseen) {
            next_ = model::succeeded(std::move(next_), wall_);
            return say_succeeded();
        }
        if (entry_.ended) return fail(why_ended());
        if (!model::holds_room(next_)) return;
        if (ledger_.row_of(next_.node) == ledger::kNoRow) {
            return fail(fmt::format("node {} was deleted", next_.node));
        }
        next_.phase == ReservationPhase::Waiting ? wait() : judge_room();
    }

    // allocated = what the owners hold of what was reserved: limited to its names and amounts.
    void sync_owners() {
        if (next_.node.empty()) return;
        std::vector<model::PodRef> owners;
        Resources held;
        for (const auto index : ledger_.owners_of(index_)) {
            const auto& pod = ledger_.pod(index);
            if (pod.assumed) continue;
            owners.push_back({std::string(pod.ns()), std::string(pod.name.view()), pod.uid.text()});
            held.add(ledger_.drawn(index, index_));
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
        next_ = model::expired(std::move(next_), why, wall_);
        next_.current_owners = owners_;
        say(true, "Expired", why);
    }

    void wait() {
        const Resources missing = ledger_.shortage(index_);
        if (ledger_.has_its_room(index_)) {
            if (!options_.opens) return;
            next_ = model::available(std::move(next_), wall_);
            return say(false, "Available", fmt::format("node {} has room now", next_.node));
        }
        next_ = model::placed_waiting(std::move(next_), object_.node, object_.allocatable, missing, wall_);
    }

    // Others may have put pods there: then nothing new is placed until it fits again.
    void judge_room() {
        const ledger::Row row = entry_.row;
        if (row == ledger::kNoRow) return;
        Resources waiting;
        for (const auto index : ledger_.waiting(row)) waiting.add(ledger_.reservation(index).allocatable);
        Resources over;
        entry_.allocatable.for_each([&](model::ResourceId id, int64_t) {
            const int64_t excess = -ledger_.free(row, id) - waiting.get(id);
            if (excess > 0) over.set(id, excess);
        });
        const std::string message =
            over.empty() ? "" : fmt::format("node {} holds {} more than it has", next_.node, over.text());
        if (!model::find_condition(next_, "Ready")) return;
        const auto before = next_.conditions;
        model::set_condition(next_, "Ready", true, "Available", message, wall_);
        if (!over.empty() && next_.conditions != before) say(true, "NodeTooFull", message);
    }

    void say_succeeded() { say(false, "Succeeded", "an owner has been bound, what it does not use is free again"); }

    void say(bool warning, std::string_view reason, std::string message) {
        event_ = Event{kApiVersion,         "Reservation",     "", object_.meta.name, object_.meta.uid, warning,
                       std::string(reason), std::move(message)};
    }

    const ReservationOptions& options_;
    const View& ledger_;
    base::Time wall_;
    std::optional<base::Duration> final_for_;
    ReservationIndex index_;
    const ledger::ReservationEntry& entry_;
    const Reservation& object_;
    ReservationStatus next_;
    std::vector<model::PodRef> owners_;  // bound ones
    std::optional<Event> event_;
};

// Its targets are named by uid: the ledger tells a reservation from the next one of its name.
class ReservationReconciler final : public Reconciler {
public:
    explicit ReservationReconciler(base::Duration gc) : options_{gc, false} {}
    std::string_view name() const override { return "reservation"; }
    std::string resource() const override { return model::kReservationResource; }
    std::vector<std::string> watches() const override { return {}; }
    bool counts() const override { return true; }

    // Whoever comes to a node, changes there or goes may concern all that hold room there; a pod also those that it
    // names, and those that it named before.
    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        const View& ledger = objects.ledger();
        std::vector<Key> out;
        if (resource == "nodes") {
            add_row(ledger, ledger.row_of(object.meta.name), out);
        } else if (resource == "pods") {
            add_row(ledger, ledger.row_of(object.node), out);
            if (const auto links = model::read_links(object.meta.annotations)) add_named(*links, out);
            const auto known = ledger.find_pod(object.meta.uid);
            if (known != ledger::kNone && ledger.pod(known).linked) add_named(ledger.pod(known).linked->links, out);
        } else {
            out.push_back({"", object.meta.uid});
            const auto known = ledger.find_reservation(object.meta.uid);
            if (known != ledger::kNone) add_row(ledger, ledger.reservation(known).row, out);
        }
        return out;
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const View& ledger = objects.ledger();
        const auto index = ledger.find_reservation(target.name);
        if (index == ledger::kNone) return {};
        Reconciled out;
        const auto final_for = objects.final_for(target.name);
        if (auto change = reconcile_reservation(options_, ledger, index, now, final_for)) {
            out.writes.push_back(write_for(std::move(*change), ledger.reservation(index).object->meta));
        }
        if (final_for) out.again = now + (options_.gc - *final_for);
        return out;
    }

    std::vector<Event> remarks(const ledger::Object& object) const override {
        const auto pod = object.as<model::Pod>();
        return pod ? judge_links(*pod) : std::vector<Event>();
    }

private:
    static void add_row(const View& ledger, ledger::Row row, std::vector<Key>& out) {
        if (row == ledger::kNoRow) return;
        for (const auto index : ledger.at(row).reservations) {
            out.push_back({"", ledger.reservation(index).object->meta.uid});
        }
    }
    static void add_named(const model::Links& links, std::vector<Key>& out) {
        for (const auto& named : links.named()) out.push_back({"", named.uid});
    }
    static Write write_for(ReservationChange change, const model::Meta& meta) {
        if (change.over) return delete_object(model::kReservationResource, meta);
        Write write = model::reservation_status_write(change.name, change.uid, change.revision, *change.status);
        write.event = std::move(change.event);
        return write;
    }

    ReservationOptions options_;
};

class NodeReservationReconciler final : public Reconciler {
public:
    std::string_view name() const override { return "reservation"; }
    std::string resource() const override { return "nodes"; }
    std::vector<std::string> watches() const override { return {}; }
    bool counts() const override { return true; }

    std::vector<Key> concerned(const std::string& resource, const Object& object, const Objects&) const override {
        if (resource != "nodes") return {};
        return {{"", object.meta.name}};
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const View& ledger = objects.ledger();
        const auto row = ledger.row_of(target.name);
        Reconciled out;
        if (row == ledger::kNoRow) return out;
        if (auto write = reconcile_node_reservation(ledger.node(row), now)) out.writes.push_back(std::move(*write));
        return out;
    }
};

}  // namespace

// Not the transition of Ready: it may have been False before.
base::Time final_since(const model::Reservation& reservation) {
    const auto* ready = model::find_condition(reservation, "Ready");
    return ready && ready->probed ? *ready->probed : reservation.meta.created;
}

std::optional<ReservationChange> reconcile_reservation(const ReservationOptions& options, const ledger::View& ledger,
                                                       ReservationIndex index, base::Time wall,
                                                       std::optional<base::Duration> final_for) {
    return Judgement(options, ledger, index, wall, final_for).change();
}

std::vector<ReservationChange> reconcile_reservations(const ReservationOptions& options, const ledger::View& ledger,
                                                      Ages& final_ones, base::Time wall, base::Instant now) {
    for (const auto& [uid, index] : ledger.reservations()) {
        const Reservation& object = *ledger.reservation(index).object;
        if (model::is_final(object.phase)) final_ones.put(uid, final_since(object));
    }
    final_ones.look(wall, now);
    std::vector<ReservationChange> out;
    for (const auto& [uid, index] : ledger.reservations()) {
        auto change = reconcile_reservation(options, ledger, index, wall, final_ones.of(uid));
        if (change) out.push_back(std::move(*change));
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return out;
}

std::vector<model::Event> judge_links(const model::Pod& pod) {
    std::vector<model::Event> events;
    const auto& meta = pod.meta;
    const auto warn = [&](std::string_view reason, std::string message) {
        events.push_back({"v1", "Pod", meta.ns, meta.name, meta.uid, true, std::string(reason), std::move(message)});
    };
    if (!pod.node.empty()) {
        const auto links = model::read_links(meta.annotations);
        if (!links && !pod.terminal()) {
            warn("AnnotationUnreadable",
                 fmt::format("{}; until it can be read nobody may draw from reservations on node {}",
                             links.error().message, pod.node));
            // As kubelets name the node that an event is about.
            events.push_back({"v1", "Node", "", pod.node, pod.node, true, "ReservationsClosed",
                              fmt::format("nobody may draw from reservations here until pod {} can be read: {}",
                                          meta.full_name(), links.error().message)});
        }
        if (pod.terminal()) return events;
        const model::Which which = model::read_which(meta.annotations);
        const std::array<std::tuple<std::string_view, std::string_view, const std::string&>, 2> parts{
            {{"cores", "CoresClosed", which.fault}, {"devices", "DevicesClosed", which.device_fault}}};
        for (const auto& [what, reason, fault] : parts) {
            if (fault.empty()) continue;
            warn("AnnotationUnreadable",
                 fmt::format("{}; until it can be read nobody is given {} of node {}", fault, what, pod.node));
            events.push_back(
                {"v1", "Node", "", pod.node, pod.node, true, std::string(reason),
                 fmt::format("nobody is given {} here until pod {} can be read: {}", what, meta.full_name(), fault)});
        }
        return events;
    }
    for (const auto key : model::kPlacementAnnotations) {
        const std::string* text = meta.annotations.find(key);
        if (text == nullptr || text->empty()) continue;
        warn("AnnotationIgnored", fmt::format("annotation \"{}\" means nothing on a pod that is not bound", key));
    }
    return events;
}

std::optional<Write> reconcile_node_reservation(const model::Node& node, base::Time wall) {
    const model::NodeView view = model::view_of(node);
    const std::string* applied = node.meta.annotations.find(model::kReservationApplied);
    if (view.applied != (applied ? *applied : "")) {
        const JsonObject notes{{model::kReservationApplied, view.applied.empty() ? Json(nullptr) : Json(view.applied)}};
        const JsonObject body{{"metadata", JsonObject{{"annotations", notes}}}};
        return if_unchanged(patch_object("nodes", node.meta, body), node.meta);
    }
    std::string complaint;
    for (const auto& fault : view.faults) complaint += (complaint.empty() ? "" : "; ") + fault.message;
    if (complaint == node.complaint) return std::nullopt;
    const bool invalid = !complaint.empty();
    const JsonObject condition{{"type", model::kReservationInvalid},
                               {"status", invalid ? "True" : "False"},
                               {"reason", invalid ? "Invalid" : "Valid"},
                               {"message", complaint},
                               {"lastTransitionTime", model::time_text(wall)}};
    Write write = if_unchanged(patch_status("nodes", node.meta, {{"conditions", JsonArray{condition}}}), node.meta);
    write.verb = Write::Verb::StrategicPatch;  // the other conditions stay
    if (invalid) {
        write.event = model::Event{
            "v1", "Node", "", node.meta.name, node.meta.uid, true, std::string(model::kReservationInvalid), complaint};
    }
    return write;
}

std::vector<std::unique_ptr<Reconciler>> reservation_reconcilers(base::Duration gc) {
    std::vector<std::unique_ptr<Reconciler>> out;
    out.push_back(std::make_unique<ReservationReconciler>(gc));
    out.push_back(std::make_unique<NodeReservationReconciler>());
    return out;
}

}  // namespace berth::control
