#include "run/reservations_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "base/mentions.h"
#include "base/thread.h"
#include "control/reservations.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/reader.h"
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

ReservationsDriver::ReservationsDriver(std::unique_ptr<link::Server> server, base::Duration gc,
                                       const base::Clock& clock, base::Metrics& metrics)
    : traffic_(std::move(server)), gc_(gc), clock_(clock), recorder_(traffic_.server(), "berth-reservations") {
    traffic_.follow("Node", {"", "v1", "nodes"});
    traffic_.follow("Pod", {"", "v1", "pods"});
    traffic_.follow("Reservation", {"scheduling.koordinator.sh", "v1alpha1", "reservations"});
    shown_->ledger = &ledger_;
    metrics.add_page([shown = shown_](std::string& out) {
        const std::lock_guard lock(shown->mutex);
        if (shown->ledger != nullptr) append_reservation_metrics(*shown->ledger, out);
    });
    thread_ = base::named_thread("reservations", [this] { run(); });
}

ReservationsDriver::~ReservationsDriver() {
    traffic_.stop();
    thread_.join();
    const std::lock_guard lock(shown_->mutex);
    shown_->ledger = nullptr;
}

void ReservationsDriver::run() {
    while (true) {
        const bool any = turn();
        if (traffic_.stopping() && traffic_.under_way() == 0) return;
        traffic_.wait(any ? kGather : kIdle);
    }
}

// False when nothing had happened.
bool ReservationsDriver::turn() {
    const std::lock_guard lock(shown_->mutex);
    const bool any = traffic_.poll([this](const auto& kind, const auto& event) { apply(kind, event); });
    take_answers();
    if (traffic_.synced() && !traffic_.stopping()) reconcile();
    return any;
}

void ReservationsDriver::apply(const std::string& kind, const link::FeedEvent& event) {
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    if (kind == "Pod" && !gone) {
        if (!says_something(*event.text)) return;
        // One that cannot be read is tried again below, where it is told why.
        if (const auto pod = decode_pod(event)) return put(**pod);
    }
    const auto view = parse_here(*event.text);
    if (!view) return base::log_error("Unreadable object", {{"error", view.error()}});
    const auto use = [&](auto read, auto put, auto remove) {
        std::string trouble;
        if (gone) return remove(model::read_meta(model::Reader(*view, trouble)));
        auto object = read(*view);
        if (!object) return tell_unreadable(kind, *view, object.error());
        object->meta.revision = event.revision;
        put(std::move(*object));
    };
    if (kind == "Node") {
        use(
            model::read_node,
            [&](model::Node node) {
                nodes_.insert(node.meta.name);
                ledger_.put(std::make_shared<const model::Node>(std::move(node)));
            },
            [&](const model::Meta& meta) { ledger_.remove_node(meta.name); });
    } else if (kind == "Pod") {
        use(
            model::read_pod, [&](const model::Pod& pod) { put(pod); },
            [&](const model::Meta& meta) { ledger_.remove_pod(meta.uid); });
    } else {
        use(
            model::read_reservation,
            [&](model::Reservation object) {
                ledger_.put(std::make_shared<const model::Reservation>(std::move(object)));
            },
            [&](const model::Meta& meta) { ledger_.remove_reservation(meta.uid); });
    }
}

void ReservationsDriver::put(const model::Pod& pod) {
    for (const auto& said : control::judge_links(pod)) tell(said);
    ledger_.put(pod);
}

void ReservationsDriver::reconcile() {
    const uint64_t seen = traffic_.seen("Reservation");
    absl::erase_if(awaited_, [&](const auto& entry) { return entry.second != 0 && entry.second <= seen; });
    judge_nodes();
    carry_out(control::reconcile_reservations({ledger_, clock_.wall(), clock_.now(), gc_, false}, ages_));
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
        for (const auto& write : writes.annotations) traffic_.send(annotation_request(write), "");
        for (const auto& write : writes.conditions) traffic_.send(condition_request(write, clock_.wall()), "");
        for (const auto& event : writes.events) tell(event);
    }
}

void ReservationsDriver::tell(const control::Event& event) {
    const bool ours = event.kind == "Reservation";
    const link::Subject subject{ours ? "scheduling.koordinator.sh/v1alpha1" : "v1", event.kind, event.ns, event.name,
                                event.uid};
    if (event.warning) {
        recorder_.warning(subject, event.reason, event.message, clock_.wall());
    } else {
        recorder_.normal(subject, event.reason, event.message, clock_.wall());
    }
}

// A broken object harms itself only, and says so itself.
void ReservationsDriver::tell_unreadable(const std::string& kind, JsonView object, const Error& error) {
    std::string trouble;
    const model::Meta meta = model::read_meta(model::Reader(object, trouble));
    base::log_warning("Unreadable object", {{"kind", kind}, {"name", meta.full_name()}, {"error", error}});
    tell({kind, meta.ns, meta.name, meta.uid, true, "Unreadable", error.message});
}

void ReservationsDriver::send(const std::string& uid, link::Request request) {
    awaited_[uid] = 0;
    traffic_.send(std::move(request), uid);
}

// A refused write is decided anew from what is stored by then.
void ReservationsDriver::take_answers() {
    traffic_.answers([this](const std::string& uid, const Result<link::Reply>& reply) {
        if (uid.empty()) return;
        if (reply && reply->ok() && reply->revision != 0) {
            awaited_[uid] = reply->revision;
        } else {
            awaited_.erase(uid);
        }
    });
}

}  // namespace berth::run
