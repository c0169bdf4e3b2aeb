#include "run/requests.h"

#include <fmt/format.h>

#include "base/json.h"
#include "ledger/intake.h"
#include "model/preemption_hold.h"
#include "model/reservation_status.h"
#include "model/times.h"
#include "model/write.h"
#include "run/writes.h"

namespace berth::run {
namespace {

using model::Write;

Write pod_write(Write::Verb verb, const auto& plan) {
    Write write{verb, "pods", "v1", plan.ns, plan.name, "", nullptr};
    write.uid = plan.uid;
    return write;
}

// Conditions are merged by their type.
Write pod_status(const auto& plan, JsonObject status) {
    Write write = pod_write(Write::Verb::StrategicPatch, plan);
    write.subresource = "status";
    write.body = JsonObject{{"status", std::move(status)}};
    return write;
}

JsonObject condition(std::string_view type, bool holds, std::string_view reason, std::string_view message,
                     base::Time now) {
    return {{"type", type},       {"status", holds ? "True" : "False"}, {"reason", reason},
            {"message", message}, {"lastProbeTime", nullptr},           {"lastTransitionTime", model::time_text(now)}};
}

// As text: every pod gets one.
Write write_for(const sched::BindPod& bind, base::Time) {
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
    Write write = pod_write(Write::Verb::Create, bind);
    write.subresource = "binding";
    write.text = std::move(body);
    return write;
}

Write write_for(const sched::RefusePod& refuse, base::Time now) {
    JsonObject status{{"conditions", JsonArray{condition("PodScheduled", false, refuse.reason, refuse.message, now)}}};
    if (refuse.nominated) {
        status["nominatedNodeName"] = refuse.nominated->empty() ? Json(nullptr) : Json(*refuse.nominated);
    }
    return pod_status(refuse, std::move(status));
}

Write write_for(const sched::ClearNomination& clear, base::Time) {
    return pod_status(clear, {{"nominatedNodeName", nullptr}});
}

// Exactly this object, not a later one of its name.
Write removal(Write write) {
    write.body = JsonObject{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
    return write;
}

Write write_for(const sched::EvictPod& evict, base::Time now) {
    if (evict.step == sched::EvictPod::Step::Delete) return removal(pod_write(Write::Verb::Delete, evict));
    const std::string why = fmt::format("{}: preempting to accommodate a higher priority pod", evict.by_scheduler);
    return pod_status(
        evict, {{"conditions", JsonArray{condition("DisruptionTarget", true, "PreemptionByScheduler", why, now)}}});
}

Write write_for(const sched::KeepVolume& keep, base::Time) {
    const JsonObject claim{{"apiVersion", "v1"},
                           {"kind", "PersistentVolumeClaim"},
                           {"namespace", keep.claim.ns},
                           {"name", keep.claim.name},
                           {"uid", keep.claim.uid}};
    Json body(JsonObject{{"spec", JsonObject{{"claimRef", claim}}}});
    if (keep.ours) base::object_at(body, {"metadata"})["annotations"] = JsonObject{{model::kBoundByController, "yes"}};
    Write write{Write::Verb::MergePatch, "persistentvolumes", "v1", "", keep.volume, "", std::move(body)};
    write.uid = keep.uid;
    write.revision = keep.revision;
    return write;
}

Write write_for(const sched::SelectNode& select, base::Time) {
    const JsonObject notes{{model::kSelectedNode, select.node}};
    Write write{Write::Verb::MergePatch,
                "persistentvolumeclaims",
                "v1",
                select.claim.ns,
                select.claim.name,
                "",
                JsonObject{{"metadata", JsonObject{{"annotations", notes}}}}};
    write.uid = select.claim.uid;
    write.revision = select.revision;
    return write;
}

Write write_for(const sched::HoldRoom& hold, base::Time) {
    return model::create_object(model::kReservationResource, "", model::preemption_hold_for(*hold.pod, hold.node));
}

Write write_for(const sched::DropRoom& drop, base::Time) {
    model::Meta meta;
    meta.name = drop.name;
    meta.uid = drop.uid;
    return removal(model::delete_object(model::kReservationResource, meta));
}

template <class Plan>
    requires requires(Plan plan) { plan.status; }
Write write_for(const Plan& plan, base::Time) {
    return model::reservation_status_write(plan.name, plan.uid, plan.revision, plan.status);
}

template <class Plan>
link::Request request(const Plan& plan, base::Time now) {
    return request_for(write_for(plan, now));
}

// Never sent to the server: see run/extenders.h.
link::Request request(const sched::AskExtender&, base::Time) {
    return {};
}

link::Request request(const sched::ReadBack& read, base::Time) {
    if (read.what == sched::ReadBack::What::Pod) {
        return {"GET", fmt::format("/api/v1/namespaces/{}/pods/{}", read.ns, read.name)};
    }
    return {"GET", fmt::format("/apis/scheduling.koordinator.sh/v1alpha1/reservations/{}", read.name)};
}

link::Subject subject(const std::string& ns, const std::string& name, const std::string& uid) {
    return {"v1", "Pod", ns, name, uid};
}

link::Subject reservation(const std::string& name, const std::string& uid) {
    return {"scheduling.koordinator.sh/v1alpha1", "Reservation", "", name, uid};
}

}  // namespace

link::Request request_for(const sched::Plan& plan, base::Time now) {
    return std::visit([&](const auto& step) { return request(step, now); }, plan);
}

const ledger::Kind& kind_of(const sched::ReadBack& read) {
    return ledger::kind_of(read.what == sched::ReadBack::What::Pod ? typeid(model::Pod) : typeid(model::Reservation));
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
    if (const auto* claim = std::get_if<sched::ClaimReservation>(&plan);
        claim && done && claim->pod.empty() && !model::is_final(claim->status.phase)) {
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
