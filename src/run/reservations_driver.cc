#include "run/reservations_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "base/mentions.h"
#include "control/reservations.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/times.h"
#include "run/decoded.h"
#include "run/requests.h"
#include "run/reservation_metrics.h"

namespace berth::run {
namespace {

// Ends and waiting rooms are looked at this often when nothing happens, and changes are gathered for so long.
constexpr base::Duration kIdle = std::chrono::seconds(1);
constexpr base::Duration kGather = std::chrono::milliseconds(20);
constexpr std::string_view kReservations = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";

JsonObject decided_about(const control::Target& target) {
    return {{"uid", target.uid}, {"resourceVersion", std::to_string(target.revision)}};
}

link::Request annotation_request(const control::AnnotationWrite& write) {
    JsonObject meta = decided_about(write.target);
    meta["annotations"] = JsonObject{{write.key, write.value.empty() ? Json(nullptr) : Json(write.value)}};
    return {"PATCH", "/api/v1/nodes/" + write.target.name, base::to_text(JsonObject{{"metadata", meta}}),
            "application/merge-patch+json"};
}

link::Request condition_request(const control::ConditionWrite& write, base::Time now) {
    const JsonObject condition{{"type", write.type},
                               {"status", write.message.empty() ? "False" : "True"},
                               {"reason", write.reason},
                               {"message", write.message},
                               {"lastTransitionTime", model::time_text(now)}};
    const Json body(JsonObject{{"metadata", decided_about(write.target)},
                               {"status", JsonObject{{"conditions", JsonArray{condition}}}}});
    return {"PATCH", fmt::format("/api/v1/nodes/{}/status", write.target.name), base::to_text(body),
            "application/strategic-merge-patch+json"};
}

// A pod that is not bound is nobody's owner, and need not be read unless it carries what only bound ones may.
bool says_something(const std::string& pod) {
    return base::mentions(pod, "\"nodeName\"") || base::mentions(pod, model::kReservationAllocated) ||
           base::mentions(pod, model::kReservationDraws);
}

}  // namespace

ReservationsDriver::ReservationsDriver(std::unique_ptr<link::ApiClient> server, link::Wake wake, base::Duration gc,
                                       base::Metrics& metrics)
    : session_(std::move(server), std::move(wake)), gc_(gc), recorder_(session_.server(), "berth-reservations") {
    for (const auto& kind : ledger::kinds()) {
        if (kind.reader == ledger::Reader::Counts) session_.follow(std::string(kind.kind), resource_of(kind));
    }
    shown_->ledger = &ledger_;
    metrics.add_page([shown = shown_](std::string& out) {
        const std::lock_guard lock(shown->mutex);
        if (shown->ledger != nullptr) append_reservation_metrics(*shown->ledger, out);
    });
}

ReservationsDriver::~ReservationsDriver() {
    const std::lock_guard lock(shown_->mutex);
    shown_->ledger = nullptr;
}

void ReservationsDriver::turn(const Moment& now) {
    const std::lock_guard lock(shown_->mutex);
    now_ = now;
    const bool any =
        session_.poll([this](const auto& kind, const auto& event) { apply(*ledger::kind_named(kind), event); });
    take_answers();
    if (session_.synced() && !stopping_) reconcile();
    next_ = now.now + (any ? kGather : kIdle);
}

void ReservationsDriver::apply(const ledger::Kind& kind, const link::FeedEvent& event) {
    if (event.type == link::FeedEvent::Type::Gone) {
        const auto meta = meta_of(event);
        if (!meta) return base::log_error("Unreadable object", {{"error", meta.error()}});
        return kind.remove(ledger_, *meta);
    }
    if (kind.plural == "pods" && !says_something(*event.text)) return;
    const auto object = decode(kind, event);
    if (!object) return tell_unreadable(kind, event, object.error());
    if (const auto pod = object->as<model::Pod>()) return put(*pod);
    if (const auto node = object->as<model::Node>()) nodes_.insert(node->meta.name);
    kind.put(ledger_, *object);
}

void ReservationsDriver::put(const model::Pod& pod) {
    for (const auto& said : control::judge_links(pod)) tell(said);
    ledger_.put(pod);
}

void ReservationsDriver::reconcile() {
    const uint64_t seen = session_.seen("Reservation");
    absl::erase_if(awaited_, [&](const auto& entry) { return entry.second != 0 && entry.second <= seen; });
    judge_nodes();
    carry_out(control::reconcile_reservations({ledger_, now_.wall, now_.now, gc_, false}, ages_));
}

void ReservationsDriver::carry_out(const control::Writes& writes) {
    for (const auto& write : writes.statuses) {
        if (awaited_.contains(write.target.uid)) continue;
        send(write.target.uid,
             status_request(write.target.name, write.target.uid, write.target.revision, write.status));
        for (const auto& event : writes.events) {
            if (event.uid != write.target.uid) continue;
            tell(event);
        }
    }
    for (const auto& target : writes.deletions) {
        if (awaited_.contains(target.uid)) continue;
        const Json options(JsonObject{
            {"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"preconditions", JsonObject{{"uid", target.uid}}}});
        send(target.uid, {"DELETE", fmt::format("{}/{}", kReservations, target.name), base::to_text(options)});
    }
}

// Each write brings the node back, changed, and it is judged again; a refused one brought something newer.
void ReservationsDriver::judge_nodes() {
    for (const auto& name : std::exchange(nodes_, {})) {
        const auto row = ledger_.row_of(name);
        if (row == ledger::kNoRow) continue;
        const auto writes = control::reconcile_node_reservation(ledger_.node(row));
        for (const auto& write : writes.annotations) session_.send(annotation_request(write), "");
        for (const auto& write : writes.conditions) session_.send(condition_request(write, now_.wall), "");
        for (const auto& event : writes.events) tell(event);
    }
}

void ReservationsDriver::tell(const control::Event& event) {
    const bool ours = event.kind == "Reservation";
    const link::Subject subject{ours ? "scheduling.koordinator.sh/v1alpha1" : "v1", event.kind, event.ns, event.name,
                                event.uid};
    if (event.warning) {
        recorder_.warning(subject, event.reason, event.message, now_.wall);
    } else {
        recorder_.normal(subject, event.reason, event.message, now_.wall);
    }
}

// A broken object harms itself only, and says so itself.
void ReservationsDriver::tell_unreadable(const ledger::Kind& kind, const link::FeedEvent& event, const Error& error) {
    const auto meta = meta_of(event);
    if (!meta) return base::log_error("Unreadable object", {{"error", meta.error()}});
    base::log_warning("Unreadable object", {{"kind", kind.kind}, {"name", meta->full_name()}, {"error", error}});
    tell({std::string(kind.kind), meta->ns, meta->name, meta->uid, true, "Unreadable", error.message});
}

void ReservationsDriver::send(const std::string& uid, link::Request request) {
    awaited_[uid] = 0;
    session_.send(std::move(request), uid);
}

// A refused write is decided anew from what is stored by then.
void ReservationsDriver::take_answers() {
    session_.answers([this](const std::string& uid, const Result<link::Reply>& reply) {
        if (uid.empty()) return;
        if (reply && reply->ok() && reply->revision != 0) {
            awaited_[uid] = reply->revision;
        } else {
            awaited_.erase(uid);
        }
    });
}

}  // namespace berth::run
