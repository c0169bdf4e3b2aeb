#include "run/scheduler_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/reader.h"
#include "model/reservation_priority.h"
#include "run/decoded.h"
#include "run/requests.h"

namespace berth::run {
namespace {

constexpr size_t kDecisionsPerRound = 256;
// Binds that may be under way at once: enough to keep group commit busy, few enough that a slow server slows us.
constexpr size_t kMostUnderWay = 4096;
constexpr base::Duration kLongestWait = std::chrono::seconds(1);

struct Source {
    const char* kind;
    link::Resource resource;
};

// Nodes first: what stands on them is counted once they are known.
const std::vector<Source>& sources() {
    static const std::vector<Source> all{
        {"Node", {"", "v1", "nodes"}},
        {"Namespace", {"", "v1", "namespaces"}},
        {"Service", {"", "v1", "services"}},
        {"ReplicationController", {"", "v1", "replicationcontrollers"}},
        {"ReplicaSet", {"apps", "v1", "replicasets"}},
        {"StatefulSet", {"apps", "v1", "statefulsets"}},
        {"PersistentVolume", {"", "v1", "persistentvolumes"}},
        {"PersistentVolumeClaim", {"", "v1", "persistentvolumeclaims"}},
        {"StorageClass", {"storage.k8s.io", "v1", "storageclasses"}},
        {"CSINode", {"storage.k8s.io", "v1", "csinodes"}},
        {"CSIDriver", {"storage.k8s.io", "v1", "csidrivers"}},
        {"CSIStorageCapacity", {"storage.k8s.io", "v1", "csistoragecapacities"}},
        {"VolumeAttachment", {"storage.k8s.io", "v1", "volumeattachments"}},
        {"PodDisruptionBudget", {"policy", "v1", "poddisruptionbudgets"}},
        {"PriorityClass", {"scheduling.k8s.io", "v1", "priorityclasses"}},
        {"Reservation", {"scheduling.koordinator.sh", "v1alpha1", "reservations"}},
        {"Pod", {"", "v1", "pods", "status.phase!=Succeeded,status.phase!=Failed"}},
    };
    return all;
}

// All that is certain of an object that is gone.
model::Meta meta_of(JsonView view) {
    std::string trouble;
    return model::read_meta(model::Reader(view, trouble));
}

// What the server said, where it did not do as it was told.
std::string trouble_of(sched::Outcome outcome, const Result<link::Reply>& reply) {
    if (outcome == sched::Outcome::Done) return "";
    if (!reply) return reply.error().message;
    const auto status = base::parse_json(reply->body);
    const auto message = status ? base::find_string(*status, {"message"}) : "";
    return message.empty() ? fmt::format("answered with code {}", reply->code) : std::string(message);
}

Result<std::string> body_of(const Result<link::Reply>& reply) {
    if (!reply) return reply.error();
    if (reply->code != 200) return base::bad_request("answered with code " + std::to_string(reply->code));
    return reply->body;
}

}  // namespace

SchedulerDriver::SchedulerDriver(std::unique_ptr<link::Server> server, sched::Scheduler::Profiles profiles,
                                 const base::Clock& clock, base::Metrics& metrics,
                                 const sched::SchedulerOptions& options, Extenders extenders)
    : traffic_(std::move(server)),
      extenders_(std::move(extenders)),
      clock_(clock),
      scheduler_(std::move(profiles), options),
      recorder_(traffic_.server(), "berth-scheduler"),
      metrics_(metrics) {
    for (const auto& source : sources()) traffic_.follow(source.kind, source.resource);
    thread_ = base::named_thread("scheduler", [this] { run(); });
}

SchedulerDriver::~SchedulerDriver() {
    traffic_.stop();
    thread_.join();
}

void SchedulerDriver::run() {
    while (true) {
        bool busy = traffic_.poll([this](const auto& kind, const auto& event) { apply(kind, event); });
        busy = take_answers() || busy;
        if (traffic_.stopping() && traffic_.under_way() == 0) return;
        if (may_decide()) busy = decide() || busy;
        if (busy) continue;
        base::Duration most = kLongestWait;
        // While we may not decide, an answer wakes us, not the queue.
        if (const auto next = scheduler_.next_wake(); next && may_decide()) {
            most = std::min(most, std::max(base::Duration::zero(), *next - clock_.now()));
        }
        traffic_.wait(most);
    }
}

bool SchedulerDriver::may_decide() const {
    return traffic_.synced() && !traffic_.stopping() && traffic_.under_way() < kMostUnderWay;
}

bool SchedulerDriver::decide() {
    if (!classed_.empty()) settle_classes();
    const auto since = clock_.now();
    auto plans = scheduler_.step(since, clock_.wall(), kDecisionsPerRound);
    metrics_.round(scheduler_, clock_.now() - since);
    const bool any = !plans.empty();
    carry_out(std::move(plans), since);
    return any;
}

// A broken object harms itself only: it is logged, and whatever was held for it before stays held.
void SchedulerDriver::apply(const std::string& kind, const link::FeedEvent& event) {
    const auto now = clock_.now();
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    if (kind == "Pod" && !gone) {
        const auto pod = decode_pod(event);
        if (!pod) return base::log_error("Unreadable object", {{"error", pod.error()}});
        if (!extenders_.empty()) keep_document(kind, (*pod)->meta, event);
        return scheduler_.put(**pod, now);
    }
    const auto view = parse_here(*event.text);
    if (!view) return base::log_error("Unreadable object", {{"error", view.error()}});
    const auto use = [&](auto read, auto put, auto remove) {
        if (gone) return remove(meta_of(*view));
        auto object = read(*view);
        if (!object) return base::log_error("Unreadable object", {{"error", object.error()}});
        object->meta.revision = event.revision;
        put(std::move(*object));
    };
    if (!extenders_.empty()) keep_document(kind, meta_of(*view), event);
    if (kind == "Node") {
        return use(
            model::read_node,
            [&](model::Node node) { scheduler_.put(std::make_shared<const model::Node>(std::move(node)), now); },
            [&](const model::Meta& meta) { scheduler_.remove_node(meta.name, now); });
    }
    if (kind == "Pod") return scheduler_.remove_pod(meta_of(*view).uid, now);
    if (kind == "Reservation") return apply_reservation(*view, event);
    if (kind == "PriorityClass") return apply_class(*view, event);
    apply_supporting(kind, *view, event);
}

void SchedulerDriver::apply_reservation(JsonView view, const link::FeedEvent& event) {
    const model::Meta meta = meta_of(view);
    classed_.erase(meta.uid);
    if (event.type == link::FeedEvent::Type::Gone) return scheduler_.remove_reservation(meta.uid, clock_.now());
    auto object = model::read_reservation(view);
    if (!object) return base::log_error("Unreadable object", {{"error", object.error()}});
    object->meta.revision = event.revision;
    auto named = model::named_class(view);
    if (named.empty()) {
        scheduler_.put(std::make_shared<const model::Reservation>(std::move(*object)), clock_.now());
    } else {
        classed_.insert_or_assign(meta.uid, Classed{std::move(*object), std::move(named)});
        settle_classes();
    }
}

void SchedulerDriver::apply_class(JsonView view, const link::FeedEvent& event) {
    if (event.type == link::FeedEvent::Type::Gone) return classes_.remove(meta_of(view).name);
    auto made = model::read_priority_class(view);
    if (!made) return base::log_error("Unreadable object", {{"error", made.error()}});
    classes_.put(std::move(*made));
}

// Which classes there are is known when every feed has come. One that is pending waits outside for a class that is not
// there: the place in the queue that it asks for is unknown. One that holds room is in no queue.
void SchedulerDriver::settle_classes() {
    if (!traffic_.synced()) return;
    absl::erase_if(classed_, [&](auto& entry) {
        Classed& waiting = entry.second;
        const auto* known = classes_.find(waiting.named);
        const bool pending = waiting.object.phase == model::ReservationPhase::Pending;
        if (known || !pending) {
            const int32_t priority = known ? known->value : waiting.object.spec->priority;
            scheduler_.put(
                std::make_shared<const model::Reservation>(model::with_priority(std::move(waiting.object), priority)),
                clock_.now());
            return true;
        }
        if (!std::exchange(waiting.told, true)) {
            recorder_.warning({"scheduling.koordinator.sh/v1alpha1", "Reservation", "", waiting.object.meta.name,
                               waiting.object.meta.uid},
                              "FailedScheduling", "no PriorityClass with name " + waiting.named + " was found",
                              clock_.wall());
        }
        return false;
    });
}

void SchedulerDriver::apply_supporting(const std::string& kind, JsonView view, const link::FeedEvent& event) {
    if (event.type == link::FeedEvent::Type::Gone) {
        const model::Meta meta = meta_of(view);
        ledger::remove_supporting(kind, meta.ns, meta.name, scheduler_.ledger());
    } else if (const auto put = ledger::put_supporting(kind, view, scheduler_.ledger(), event.revision); !put) {
        return base::log_error("Unreadable object", {{"error", put.error()}});
    }
    scheduler_.happened(kind == "Namespace" ? sched::Change::Namespace : sched::Change::Volume, clock_.now());
}

// Extenders are told whole objects.
void SchedulerDriver::keep_document(const std::string& kind, const model::Meta& meta, const link::FeedEvent& event) {
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    if (kind == "Pod") gone ? extenders_.remove_pod(meta.uid) : extenders_.put_pod(meta.uid, event.text);
    if (kind == "Node") gone ? extenders_.remove_node(meta.name) : extenders_.put_node(meta.name, event.text);
}

void SchedulerDriver::carry_out(std::vector<sched::Plan> plans, base::Instant since) {
    metrics_.planned(plans);
    for (auto& plan : plans) {
        Sent sent{std::move(plan), {}, 0, since, since};
        if (const auto* bind = std::get_if<sched::BindPod>(&sent.plan)) {
            const model::Pod* pod = scheduler_.pending_pod(bind->uid);
            if (pod != nullptr) sent.profile = pod->spec->scheduler_name;
            sent.attempts = scheduler_.attempts(bind->uid);
            sent.ready = scheduler_.ready_since(bind->uid).value_or(since);
        }
        send(std::move(sent));
    }
}

// To the server, or to an extender.
void SchedulerDriver::send(Sent sent) {
    if (std::holds_alternative<sched::AskExtender>(sent.plan)) {
        const auto question = std::get<sched::AskExtender>(sent.plan);
        return extenders_.ask(question, traffic_.expect(std::move(sent)));
    }
    if (const auto* bind = std::get_if<sched::BindPod>(&sent.plan); bind && bind->extender) {
        const sched::BindPod wanted = *bind;
        return bind_by_extender(wanted, traffic_.expect(std::move(sent)));
    }
    auto request = request_for(sent.plan, clock_.wall());
    traffic_.send(std::move(request), std::move(sent));
}

void SchedulerDriver::count(const Sent& sent, sched::Outcome outcome) {
    if (!std::holds_alternative<sched::BindPod>(sent.plan)) return;
    const auto now = clock_.now();
    const auto took = now - sent.since;
    if (outcome == sched::Outcome::Done) {
        metrics_.bound(sent.profile, took, now - sent.ready, sent.attempts);
    } else {
        metrics_.failed(sent.profile, took);
    }
}

// An error that the extender tells of is a refusal; without an answer only the stored pod knows.
void SchedulerDriver::bind_by_extender(const sched::BindPod& bind, link::ReplyTo answer) {
    extenders_.bind(bind, [answer = std::move(answer)](Result<link::Reply> reply) {
        const bool refused = reply && reply->ok() && !sched::read_bind_reply(reply->body);
        if (refused) reply->code = 409;
        answer(std::move(reply));
    });
}

// An answer that the feed has overtaken must not bring an older state back.
void SchedulerDriver::take_stored(const sched::ReadBack& read, const link::Reply& reply) {
    const bool pod = read.what == sched::ReadBack::What::Pod;
    const std::string kind = pod ? "Pod" : "Reservation";
    if (reply.code == 404) {
        pod ? scheduler_.remove_pod(read.uid, clock_.now()) : scheduler_.remove_reservation(read.uid, clock_.now());
    } else if (reply.ok() && (reply.revision == 0 || reply.revision > traffic_.seen(kind))) {
        apply(kind, {link::FeedEvent::Type::Put, std::make_shared<const std::string>(reply.body), reply.revision});
    }
}

bool SchedulerDriver::take_answers() {
    return traffic_.answers([this](const Sent& sent, const Result<link::Reply>& reply) {
        const sched::Plan& plan = sent.plan;
        const auto outcome = outcome_of(plan, reply);
        if (const auto* read = std::get_if<sched::ReadBack>(&plan); read && reply) take_stored(*read, *reply);
        count(sent, outcome);
        record(recorder_, plan, outcome, clock_.wall());
        const auto* question = std::get_if<sched::AskExtender>(&plan);
        auto further = question ? scheduler_.answered(*question, body_of(reply), clock_.now())
                                : scheduler_.outcome(plan, outcome, clock_.now(), trouble_of(outcome, reply));
        if (!traffic_.stopping()) carry_out(std::move(further), clock_.now());
    });
}

}  // namespace berth::run
