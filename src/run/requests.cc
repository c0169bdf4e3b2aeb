#include "run/requests.h"

#include <fmt/format.h>

#include "base/json.h"
#include "model/preemption_hold.h"
#include "model/reservation_status.h"
#include "model/times.h"

namespace berth::run {
namespace {

constexpr std::string_view kReservations = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";

std::string pod_path(const std::string& ns, const std::string& name) {
    return fmt::format("/api/v1/namespaces/{}/pods/{}", ns, name);
}

link::Request status_patch(const std::string& ns, const std::string& name, const std::string& uid, JsonObject status) {
    const Json body(JsonObject{{"metadata", JsonObject{{"uid", uid}}}, {"status", std::move(status)}});
    return {"PATCH", pod_path(ns, name) + "/status", base::to_text(body), "application/strategic-merge-patch+json"};
}

// Deletes exactly this object, not a later one of its name.
link::Request removal(const std::string& path, const std::string& uid) {
    const Json options(
        JsonObject{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"preconditions", JsonObject{{"uid", uid}}}});
    return {"DELETE", path, base::to_text(options)};
}

Json nominated_value(const std::string& node) {
    return node.empty() ? Json(nullptr) : Json(node);
}

link::Request request(const sched::BindPod& bind, base::Time) {
    std::string body = R"({"kind":"Binding","apiVersion":"v1","target":{"apiVersion":"v1","kind":"Node","name":)";
    const auto member = [&](std::string_view before, std::string_view value) {
        body += before;
        base::append_quoted(value, body);
    };
    base::append_quoted(bind.node, body);
    member(R"(},"metadata":{"name":)", bind.name);
    member(R"(,"namespace":)", bind.ns);
    member(R"(,"uid":)", bind.uid);
    std::string_view before = R"(,"annotations":{)";
    for (const auto& [key, value] : bind.annotations) {
        member(std::exchange(before, ","), key);
        member(":", value);
    }
    body += bind.annotations.empty() ? "}}" : "}}}";
    return {"POST", pod_path(bind.ns, bind.name) + "/binding", std::move(body)};
}

link::Request request(const sched::RefusePod& refuse, base::Time now) {
    const Json condition(JsonObject{{"type", "PodScheduled"},
                                    {"status", "False"},
                                    {"reason", refuse.reason},
                                    {"message", refuse.message},
                                    {"lastProbeTime", nullptr},
                                    {"lastTransitionTime", model::time_text(now)}});
    JsonObject status{{"conditions", JsonArray{condition}}};
    if (refuse.nominated) status["nominatedNodeName"] = nominated_value(*refuse.nominated);
    return status_patch(refuse.ns, refuse.name, refuse.uid, std::move(status));
}

link::Request request(const sched::ClearNomination& clear, base::Time) {
    return status_patch(clear.ns, clear.name, clear.uid, {{"nominatedNodeName", nullptr}});
}

link::Request request(const sched::EvictPod& evict, base::Time now) {
    if (evict.step == sched::EvictPod::Step::Delete) return removal(pod_path(evict.ns, evict.name), evict.uid);
    const Json condition(
        JsonObject{{"type", "DisruptionTarget"},
                   {"status", "True"},
                   {"reason", "PreemptionByScheduler"},
                   {"message", fmt::format("{}: preempting to accommodate a higher priority pod", evict.by_scheduler)},
                   {"lastProbeTime", nullptr},
                   {"lastTransitionTime", model::time_text(now)}});
    return status_patch(evict.ns, evict.name, evict.uid, {{"conditions", JsonArray{condition}}});
}

JsonObject seen_meta(const std::string& uid, uint64_t revision) {
    JsonObject meta{{"uid", uid}};
    if (revision != 0) meta["resourceVersion"] = std::to_string(revision);
    return meta;
}

link::Request request(const sched::KeepVolume& keep, base::Time) {
    JsonObject meta = seen_meta(keep.uid, keep.revision);
    if (keep.ours) meta["annotations"] = JsonObject{{model::kBoundByController, "yes"}};
    const JsonObject claim{{"apiVersion", "v1"},
                           {"kind", "PersistentVolumeClaim"},
                           {"namespace", keep.claim.ns},
                           {"name", keep.claim.name},
                           {"uid", keep.claim.uid}};
    const Json body(JsonObject{{"metadata", meta}, {"spec", JsonObject{{"claimRef", claim}}}});
    return {"PATCH", "/api/v1/persistentvolumes/" + keep.volume, base::to_text(body), "application/merge-patch+json"};
}

link::Request request(const sched::SelectNode& select, base::Time) {
    JsonObject meta = seen_meta(select.claim.uid, select.revision);
    meta["annotations"] = JsonObject{{model::kSelectedNode, select.node}};
    return {"PATCH", fmt::format("/api/v1/namespaces/{}/persistentvolumeclaims/{}", select.claim.ns, select.claim.name),
            base::to_text(Json(JsonObject{{"metadata", meta}})), "application/merge-patch+json"};
}

// Never sent to the server: see run/extenders.h.
link::Request request(const sched::AskExtender&, base::Time) {
    return {};
}

link::Request request(const sched::HoldRoom& hold, base::Time) {
    return {"POST", std::string(kReservations), base::to_text(model::preemption_hold_for(*hold.pod, hold.node))};
}

link::Request request(const sched::DropRoom& drop, base::Time) {
    return removal(fmt::format("{}/{}", kReservations, drop.name), drop.uid);
}

link::Request request(const sched::WriteReservation& write, base::Time) {
    return status_request(write.name, write.uid, write.revision, write.status);
}

link::Request request(const sched::ClaimReservation& claim, base::Time) {
    return status_request(claim.name, claim.uid, claim.revision, claim.status);
}

link::Request request(const sched::OpenReservation& open, base::Time) {
    return status_request(open.name, open.uid, open.revision, open.status);
}

link::Request request(const sched::ReadBack& read, base::Time) {
    if (read.what == sched::ReadBack::What::Pod) return {"GET", pod_path(read.ns, read.name)};
    return {"GET", fmt::format("{}/{}", kReservations, read.name)};
}

link::Subject subject(const std::string& ns, const std::string& name, const std::string& uid) {
    return {"v1", "Pod", ns, name, uid};
}

link::Subject reservation(const std::string& name, const std::string& uid) {
    return {"scheduling.koordinator.sh/v1alpha1", "Reservation", "", name, uid};
}

}  // namespace

// A JSON patch: it replaces the whole status, where a merge patch would leave owners and amounts that are no longer
// there.
link::Request status_request(const std::string& name, const std::string& uid, uint64_t revision,
                             const model::ReservationStatus& status) {
    JsonArray steps;
    const auto put = [&](std::string_view path, Json value) {
        steps.push_back(JsonObject{{"op", "add"}, {"path", path}, {"value", std::move(value)}});
    };
    put("/metadata/uid", Json(uid));
    if (revision != 0) put("/metadata/resourceVersion", Json(std::to_string(revision)));
    put("/status", model::status_document(status));
    return {"PATCH", fmt::format("{}/{}/status", kReservations, name), base::to_text(Json(std::move(steps))),
            "application/json-patch+json"};
}

link::Request request_for(const sched::Plan& plan, base::Time now) {
    return std::visit([&](const auto& step) { return request(step, now); }, plan);
}

sched::Outcome outcome_of(const sched::Plan& plan, const Result<link::Reply>& reply) {
    if (!reply) return sched::Outcome::Unknown;
    if (reply->ok()) return sched::Outcome::Done;
    if (std::holds_alternative<sched::ReadBack>(plan) && reply->code == 404) return sched::Outcome::Done;
    if (std::holds_alternative<sched::HoldRoom>(plan)) {
        if (reply->code == 409) return sched::Outcome::Done;     // there is one already; the feed tells of it
        if (reply->code == 429) return sched::Outcome::Unknown;  // another time
    }
    // 5xx and a time-out inside the server say nothing about whether the write took effect.
    return reply->code >= 500 ? sched::Outcome::Unknown : sched::Outcome::Refused;
}

void record(link::Recorder& recorder, const sched::Plan& plan, sched::Outcome outcome, base::Time now) {
    const bool done = outcome == sched::Outcome::Done;
    if (const auto* bind = std::get_if<sched::BindPod>(&plan); bind && done) {
        recorder.normal(subject(bind->ns, bind->name, bind->uid), "Scheduled",
                        fmt::format("Successfully assigned {}/{} to {}", bind->ns, bind->name, bind->node), now);
    }
    if (const auto* refuse = std::get_if<sched::RefusePod>(&plan)) {
        recorder.warning(subject(refuse->ns, refuse->name, refuse->uid), "FailedScheduling", refuse->message, now);
    }
    const auto* evict = std::get_if<sched::EvictPod>(&plan);
    if (evict && done && evict->step == sched::EvictPod::Step::Delete) {
        recorder.normal(subject(evict->ns, evict->name, evict->uid), "Preempted",
                        fmt::format("Preempted by pod {} on node {}", evict->by, evict->node), now);
    }
    if (const auto* claim = std::get_if<sched::ClaimReservation>(&plan); claim && done && claim->pod.empty()) {
        recorder.warning(reservation(claim->name, claim->uid), "ClaimReleased",
                         "the pod that claimed it was never bound", now);
    }
    if (const auto* open = std::get_if<sched::OpenReservation>(&plan); open && done) {
        recorder.normal(reservation(open->name, open->uid), "Available",
                        fmt::format("node {} has room now", open->status.node), now);
    }
    if (const auto* write = std::get_if<sched::WriteReservation>(&plan); write && done) {
        if (write->placed) {
            recorder.normal(reservation(write->name, write->uid), "Scheduled", write->message, now);
            const auto* ready = model::find_condition(write->status, "Ready");
            if (ready != nullptr && write->status.phase == model::ReservationPhase::Waiting) {
                recorder.normal(reservation(write->name, write->uid), "Waiting", ready->message, now);
            }
        } else {
            recorder.warning(reservation(write->name, write->uid), "FailedScheduling", write->message, now);
        }
    }
}

}  // namespace berth::run
