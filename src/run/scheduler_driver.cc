#include "run/scheduler_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "model/node.h"
#include "model/pod.h"
#include "run/decoded.h"
#include "run/requests.h"
#include "sched/shares.h"

namespace berth::run {
namespace {

constexpr size_t kDecisionsPerRound = 256;
// Binds that may be under way at once: enough to keep group commit busy, few enough that a slow server slows us.
constexpr size_t kMostUnderWay = 4096;
constexpr base::Duration kLongestWait = std::chrono::seconds(1);
constexpr base::Duration kTellShares = std::chrono::seconds(1);
constexpr auto kLivePods = "status.phase!=Succeeded,status.phase!=Failed";

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

SchedulerDriver::SchedulerDriver(Doors doors, sched::Scheduler::Profiles profiles,
                                 const sched::SchedulerOptions& options)
    : session_(std::move(doors.server), std::move(doors.wake)),
      extenders_(std::move(doors.extenders)),
      scheduler_(std::move(profiles), options),
      recorder_(session_.server(), "berth-scheduler"),
      metrics_(doors.metrics),
      clock_(doors.clock) {
    for (const auto& kind : ledger::kinds()) {
        if (kind.reader == ledger::Reader::Shares && !options.shares) continue;
        link::Resource resource = resource_of(kind);
        if (kind.gives<model::Pod>()) resource.only = kLivePods;
        session_.follow(std::string(kind.kind), resource);
    }
}

void SchedulerDriver::turn(const Moment& now) {
    now_ = now;
    busy_ = session_.poll([this](const auto& kind, const auto& event) { apply(*ledger::kind_named(kind), event); });
    busy_ = take_answers() || busy_;
    if (may_decide()) busy_ = decide() || busy_;
}

base::Instant SchedulerDriver::next() const {
    if (busy_) return now_.now;
    const auto latest = now_.now + kLongestWait;
    // While we may not decide, an answer wakes us, not the queue.
    const auto wake = may_decide() ? scheduler_.next_wake() : std::nullopt;
    return wake ? std::min(latest, *wake) : latest;
}

bool SchedulerDriver::may_decide() const {
    return session_.synced() && !stopping_ && session_.under_way() < kMostUnderWay;
}

bool SchedulerDriver::decide() {
    if (!classed_.empty()) apply_classes();
    const auto since = clock_.now();
    auto plans = scheduler_.step(now_.now, now_.wall, kDecisionsPerRound);
    metrics_.round(scheduler_, clock_.now() - since);
    if (scheduler_.shares() != nullptr && now_.now - shares_told_ >= kTellShares) {
        shares_told_ = now_.now;
        metrics_.shares(scheduler_.shares()->accounts(scheduler_.ledger()));
    }
    const bool any = !plans.empty();
    carry_out(std::move(plans));
    return any;
}

// A broken object harms itself only: it is logged, and whatever was held for it before stays held.
void SchedulerDriver::apply(const ledger::Kind& kind, const link::FeedEvent& event) {
    if (event.type == link::FeedEvent::Type::Gone) {
        const auto meta = meta_of(event);
        if (!meta) return base::log_error("Unreadable object", {{"error", meta.error()}});
        return remove(kind, *meta);
    }
    const auto object = decode(kind, event);
    if (!object) return base::log_error("Unreadable object", {{"error", object.error()}});
    if (const auto pod = object->as<model::Pod>()) extenders_.put_pod(pod->meta.uid, event.text);
    if (const auto node = object->as<model::Node>()) extenders_.put_node(node->meta.name, event.text);
    if (auto reservation = object->as<model::Reservation>()) return put(std::move(reservation));
    scheduler_.put(*object, now_.now);
}

void SchedulerDriver::remove(const ledger::Kind& kind, const model::Meta& meta) {
    if (kind.gives<model::Pod>()) extenders_.remove_pod(meta.uid);
    if (kind.gives<model::Node>()) extenders_.remove_node(meta.name);
    if (kind.gives<model::Reservation>()) classed_.erase(meta.uid);
    scheduler_.remove(kind, meta, now_.now);
}

void SchedulerDriver::put(std::shared_ptr<const model::Reservation> reservation) {
    classed_.erase(reservation->meta.uid);
    if (reservation->priority_class.empty()) return scheduler_.put(std::move(reservation), now_.now);
    const std::string uid = reservation->meta.uid;
    classed_.insert_or_assign(uid, Classed{std::move(reservation)});
    apply_classes();
}

// Which classes there are is known when every feed has come. One that is pending waits outside for a class that is not
// there: the place in the queue that it asks for is unknown. One that holds room is in no queue.
void SchedulerDriver::apply_classes() {
    if (!session_.synced()) return;
    absl::erase_if(classed_, [&](auto& entry) {
        Classed& waiting = entry.second;
        const auto& object = *waiting.object;
        const auto* known = scheduler_.ledger().priority_classes().find(object.priority_class);
        if (known || object.phase != model::ReservationPhase::Pending) {
            const int32_t priority = known ? known->value : object.spec->priority;
            scheduler_.put(std::make_shared<const model::Reservation>(model::with_priority(object, priority)),
                           now_.now);
            return true;
        }
        if (!std::exchange(waiting.told, true)) {
            recorder_.warning(
                {"scheduling.koordinator.sh/v1alpha1", "Reservation", "", object.meta.name, object.meta.uid},
                "FailedScheduling", "no PriorityClass with name " + object.priority_class + " was found", now_.wall);
        }
        return false;
    });
}

void SchedulerDriver::carry_out(std::vector<sched::Plan> plans) {
    metrics_.planned(plans);
    for (auto& plan : plans) {
        Sent sent{std::move(plan), {}, 0, now_.now, now_.now};
        if (const auto* bind = std::get_if<sched::BindPod>(&sent.plan)) {
            const model::Pod* pod = scheduler_.pending_pod(bind->uid);
            if (pod != nullptr) sent.profile = pod->spec->scheduler_name;
            sent.attempts = scheduler_.queue().attempts(bind->uid);
            sent.ready = scheduler_.queue().ready_since(bind->uid).value_or(now_.now);
        }
        send(std::move(sent));
    }
}

// To the server, or to an extender.
void SchedulerDriver::send(Sent sent) {
    if (std::holds_alternative<sched::AskExtender>(sent.plan)) {
        const auto question = std::get<sched::AskExtender>(sent.plan);
        return extenders_.ask(question, session_.expect(std::move(sent)));
    }
    if (const auto* bind = std::get_if<sched::BindPod>(&sent.plan); bind && bind->extender) {
        const sched::BindPod wanted = *bind;
        return bind_by_extender(wanted, session_.expect(std::move(sent)));
    }
    auto request = request_for(sent.plan, now_.wall);
    session_.send(std::move(request), std::move(sent));
}

void SchedulerDriver::count(const Sent& sent, sched::Outcome outcome) {
    if (!std::holds_alternative<sched::BindPod>(sent.plan)) return;
    const auto took = now_.now - sent.since;
    if (outcome == sched::Outcome::Done) {
        metrics_.bound(sent.profile, took, now_.now - sent.ready, sent.attempts);
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
    const auto& kind = kind_of(read);
    if (reply.code == 404) {
        remove(kind, ledger::uid_alone(read.uid));
    } else if (reply.ok() && (reply.revision == 0 || reply.revision > session_.seen(kind.kind))) {
        apply(kind, {link::FeedEvent::Type::Put, std::make_shared<const std::string>(reply.body), reply.revision});
    }
}

bool SchedulerDriver::take_answers() {
    return session_.answers([this](const Sent& sent, const Result<link::Reply>& reply) {
        const sched::Plan& plan = sent.plan;
        const auto outcome = outcome_of(plan, reply);
        if (const auto* read = std::get_if<sched::ReadBack>(&plan); read && reply) take_stored(*read, *reply);
        count(sent, outcome);
        record(recorder_, plan, outcome, now_.wall);
        const auto* question = std::get_if<sched::AskExtender>(&plan);
        auto further = question ? scheduler_.answered(*question, body_of(reply), now_.now)
                                : scheduler_.outcome(plan, outcome, now_.now, trouble_of(outcome, reply));
        if (!stopping_) carry_out(std::move(further));
    });
}

}  // namespace berth::run
