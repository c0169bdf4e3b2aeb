#include "cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "control/reservations.h"
#include "control/volumes.h"
#include "ledger/intake.h"
#include "model/allocated.h"
#include "model/preemption_hold.h"
#include "run/decoded.h"
#include "run/requests.h"
#include "run/writes.h"
#include "sched/cycle.h"

namespace berth::crash {
namespace {

using Sources = std::vector<std::pair<std::string, link::Resource>>;

// The rows of the table of kinds that are read here.
Sources sources(std::initializer_list<std::string_view> kinds) {
    Sources out;
    for (const auto kind : kinds) out.emplace_back(kind, run::resource_of(*ledger::kind_named(kind)));
    return out;
}
Sources scheduled() {
    return sources({"Node", "PersistentVolume", "PersistentVolumeClaim", "StorageClass", "Reservation", "Pod"});
}
Sources counted() {
    return sources({"Node", "Reservation", "Pod"});
}
// By the names that reconcilers know.
Sources reconciled() {
    auto out = sources({"Node", "PersistentVolume", "PersistentVolumeClaim", "StorageClass"});
    for (auto& [name, resource] : out) name = ledger::kind_named(name)->stored();
    return out;
}

// For a ledger of stored objects.
void count(ledger::Ledger& ledger, const std::string& name, const link::FeedEvent& event) {
    const auto& kind = *ledger::kind_named(name);
    kind.put(ledger, *run::decode(kind, event));
}

Json resources(int cpu) {
    return JsonArray{JsonObject{{"name", "main"},
                                {"resources", JsonObject{{"requests", JsonObject{{"cpu", std::to_string(cpu)}}}}}}};
}

}  // namespace

Follower::Follower(SmallServer& server, const Sources& sources) {
    for (const auto& [kind, resource] : sources) feeds_.push_back({kind, server.follow(resource)});
}

bool Follower::poll(Followed& from, size_t most, const Apply& apply) {
    bool any = false;
    for (const auto& event : from.feed->poll(most)) {
        any = true;
        from.seen = std::max(from.seen, event.revision);
        if (event.type != link::FeedEvent::Type::Synced) apply(from.kind, event);
    }
    return any;
}

bool Follower::poll(size_t most, const Apply& apply) {
    bool any = false;
    for (auto& each : feeds_) any = poll(each, most, apply) || any;
    return any;
}

void Follower::poll_one(base::Random& random, const Apply& apply) {
    poll(feeds_[random.below(feeds_.size())], 1 + random.below(6), apply);
}

uint64_t Follower::seen(const std::string& kind) const {
    const auto found = std::find_if(feeds_.begin(), feeds_.end(), [&](const auto& each) { return each.kind == kind; });
    return found == feeds_.end() ? 0 : found->seen;
}

Cluster::Cluster(ServerKind kind)
    : kind_(kind),
      server_(kind == ServerKind::Embedded),
      judge_(kind == ServerKind::Plain),
      objects_feed_(server_, reconciled()) {
    server_.written = [this] { judge_.look(server_); };
    server_.create("storage.k8s.io/storageclasses", JsonObject{{"metadata", JsonObject{{"name", "late"}}},
                                                               {"provisioner", control::kSimulatedProvisioner},
                                                               {"volumeBindingMode", "WaitForFirstConsumer"}});
    reconcilers_.push_back(control::claim_binder_reconciler());
    reconcilers_.push_back(control::volume_binder_reconciler());
    reconcilers_.push_back(control::simulated_provisioner_reconciler());
    start_controllers();
    start();
}

void Cluster::start_controllers() {
    controllers_view_ = control::Objects();
    reservation_controllers_ = control::reservation_reconcilers(std::chrono::hours(24));
    controllers_feed_ = std::make_unique<Follower>(server_, counted());
    while (controllers_feed_->poll(1000, controllers_apply())) {
    }
}

Follower::Apply Cluster::controllers_apply() {
    return [this](const auto& name, const auto& event) {
        const auto& kind = *ledger::kind_named(name);
        if (event.type == link::FeedEvent::Type::Gone) return controllers_view_.uncount(kind, *run::meta_of(event));
        controllers_view_.count(kind, *run::decode(kind, event));
    };
}

void Cluster::start() {
    scheduler_ =
        std::make_unique<sched::Scheduler>(sched::Scheduler::Profiles{{"berth", sched::default_profile()}},
                                           sched::SchedulerOptions{.claims_first = kind_ == ServerKind::Plain});
    feed_ = std::make_unique<Follower>(server_, scheduled());
    while (feed_->poll(1000, [this](const auto& kind, const auto& event) { apply(kind, event); })) {
    }
}

// ---- what people do

void Cluster::node(const std::string& name, int cpu) {
    server_.create("nodes", JsonObject{{"metadata", JsonObject{{"name", name}}},
                                       {"status", JsonObject{{"allocatable", JsonObject{{"cpu", std::to_string(cpu)},
                                                                                        {"memory", "8Gi"},
                                                                                        {"pods", "20"}}}}}});
}

void Cluster::pod(const std::string& name, int cpu, int priority, const std::string& app, const std::string& node,
                  const std::string& claim) {
    JsonObject spec{{"schedulerName", "berth"}, {"priority", priority}, {"containers", resources(cpu)}};
    if (!node.empty()) spec["nodeName"] = node;
    if (!claim.empty()) {
        spec["volumes"] =
            JsonArray{JsonObject{{"name", "data"}, {"persistentVolumeClaim", JsonObject{{"claimName", claim}}}}};
    }
    server_.create(
        "pods", JsonObject{{"metadata",
                            JsonObject{{"name", name}, {"namespace", "default"}, {"labels", JsonObject{{"app", app}}}}},
                           {"spec", spec}});
}

void Cluster::claim(const std::string& name) {
    server_.create(
        "persistentvolumeclaims",
        JsonObject{{"metadata", JsonObject{{"name", name}, {"namespace", "default"}}},
                   {"spec", JsonObject{{"storageClassName", "late"},
                                       {"accessModes", JsonArray{"ReadWriteOnce"}},
                                       {"resources", JsonObject{{"requests", JsonObject{{"storage", "1Gi"}}}}}}}});
}

void Cluster::reservation(const std::string& name, int cpu, const std::string& owner, bool once, bool pre_allocation) {
    const JsonObject labels{{"matchLabels", JsonObject{{"app", owner}}}};
    server_.create(
        kReservations,
        JsonObject{
            {"metadata", JsonObject{{"name", name}}},
            {"spec", JsonObject{{"owners", JsonArray{JsonObject{{"labelSelector", labels}}}},
                                {"allocateOnce", once},
                                {"preAllocation", pre_allocation},
                                {"template", JsonObject{{"spec", JsonObject{{"containers", resources(cpu)}}}}}}}});
}

void Cluster::delete_pod(const std::string& name) {
    server_.perform(link::Request{"DELETE", "/api/v1/namespaces/default/pods/" + name});
}

void Cluster::delete_reservation(const std::string& name) {
    server_.perform(link::Request{"DELETE", "/apis/scheduling.koordinator.sh/v1alpha1/reservations/" + name});
}

// ---- the scheduler

void Cluster::apply(const std::string& name, const link::FeedEvent& event) {
    const auto& kind = *ledger::kind_named(name);
    if (event.type == link::FeedEvent::Type::Gone) return scheduler_->remove(kind, *run::meta_of(event), now_);
    scheduler_->put(*run::decode(kind, event), now_);
}

void Cluster::take(std::vector<sched::Plan> plans) {
    for (auto& plan : plans) {
        auto request = run::request_for(plan, wall_);
        outbox_.push_back({std::move(plan), std::move(request)});
    }
}

void Cluster::hear(const sched::Plan& plan, const Result<link::Reply>& reply) {
    const auto outcome = run::outcome_of(plan, reply);
    if (const auto* back = std::get_if<sched::ReadBack>(&plan); back && reply) {
        const auto& kind = run::kind_of(*back);
        if (reply->code == 404) {
            scheduler_->remove(kind, ledger::uid_alone(back->uid), now_);
        } else if (reply->ok() && reply->revision > feed_->seen(std::string(kind.kind))) {
            apply(std::string(kind.kind),
                  {link::FeedEvent::Type::Put, std::make_shared<const std::string>(reply->body), reply->revision});
        }
    }
    take(scheduler_->outcome(plan, outcome, now_));
}

void Cluster::schedule(const std::function<Fate()>& fate) {
    feed_->poll(2, [this](const auto& kind, const auto& event) { apply(kind, event); });
    take(scheduler_->step(now_, wall_, 2));
    if (outbox_.empty()) return;
    const Sent sent = std::move(outbox_.front());
    outbox_.pop_front();
    ++requests_;
    const Result<link::Reply> nobody_knows = base::internal("the connection broke");
    switch (fate()) {
        case Fate::Answered:
            return hear(sent.plan, server_.perform(sent.request));
        case Fate::AnswerLost:
            server_.perform(sent.request);
            return hear(sent.plan, nobody_knows);
        case Fate::Lost:
            return hear(sent.plan, nobody_knows);
        case Fate::DieBefore:
            return kill();
        case Fate::DieAfter:
            server_.perform(sent.request);
            return kill();
        case Fate::DieThenLater:
            late_.push_back(sent);
            if (kind_ == ServerKind::Plain) deliver_late();
            return kill();
    }
}

void Cluster::kill() {
    outbox_.clear();
    start();
}

void Cluster::deliver_late() {
    for (const auto& sent : std::exchange(late_, {})) server_.perform(sent.request);
}

// ---- the others

void Cluster::run_controllers() {
    controllers_feed_->poll(1000, controllers_apply());
    for (const auto& write : reservation_writes()) server_.perform(write);
    reconcile_objects();
}

std::vector<link::Request> Cluster::reservation_writes() {
    controllers_view_.pass_time(wall_, now_);
    std::set<control::Key> targets;
    for (const auto& [uid, index] : controllers_view_.ledger().reservations()) targets.insert({"", uid});
    std::vector<link::Request> out;
    for (const auto& target : targets) {
        for (auto& write : reservation_controllers_.front()->reconcile(target, controllers_view_, wall_).writes) {
            out.push_back(run::request_for(std::move(write)));
        }
    }
    return out;
}

void Cluster::reconcile_objects() {
    objects_feed_.poll(1000, [this](const std::string& kind, const link::FeedEvent& event) {
        const Json document = *base::parse_json(*event.text);
        if (event.type == link::FeedEvent::Type::Gone) {
            return objects_.remove(kind, std::string(base::find_string(document, {"metadata", "namespace"})),
                                   std::string(base::find_string(document, {"metadata", "name"})));
        }
        const auto object = control::read_object(event.text, event.revision);
        CHECK(object != nullptr);
        objects_.put(kind, object);
    });
    for (const auto& reconciler : reconcilers_) {
        std::set<control::Key> targets;
        for (const auto& resource : reconciler->watches()) {
            for (const auto& object : objects_.list(resource)) {
                for (auto& target : reconciler->concerned(resource, *object, objects_)) targets.insert(target);
            }
        }
        for (const auto& target : targets) {
            for (auto& write : reconciler->reconcile(target, objects_, wall_).writes) {
                server_.perform(run::request_for(std::move(write)));
            }
        }
    }
}

void Cluster::end_pods() {
    for (const auto& record : server_.list("pods")) {
        const auto pod = *run::read_pod_here(*record->bytes);
        if (pod.meta.deleted) server_.remove(record->key);
    }
}

void Cluster::later(base::Duration by) {
    now_ = now_ + by;
    wall_ = wall_ + by;
}

bool Cluster::settle() {
    uint64_t before = 0;
    int quiet = 0;
    calm_down();
    deliver_late();
    for (int round = 0; round < 2000; ++round) {
        schedule([] { return Fate::Answered; });
        if (!outbox_.empty()) continue;
        run_controllers();
        end_pods();
        const bool heard = feed_->poll(2, [this](const auto& kind, const auto& event) { apply(kind, event); });
        const bool same = !heard && server_.store().revision() == before && outbox_.empty() &&
                          scheduler_->queue().sizes().active == 0;
        before = server_.store().revision();
        quiet = same ? quiet + 1 : 0;
        if (same) later(std::chrono::seconds(11));
        if (quiet > 8) return true;
    }
    return false;
}

// ---- what must hold

ledger::Ledger Cluster::stored() const {
    ledger::Ledger ledger;
    for (const auto* name : {"Node", "Reservation", "Pod"}) {
        for (const auto& record : server_.list(ledger::kind_named(name)->stored())) {
            count(ledger, name, {link::FeedEvent::Type::Put, record->bytes, record->revision});
        }
    }
    return ledger;
}

std::string Cluster::unsettled() {
    ledger::Ledger truth = stored();
    const ledger::View& seen = scheduler_->ledger();
    for (ledger::Row row = 0; row < truth.rows(); ++row) {
        const auto other = seen.row_of(truth.name(row));
        if (other == ledger::kNoRow) return fmt::format("the scheduler does not know {}", truth.name(row));
        const int64_t stored_use = truth.column(model::kCpu)->used[row];
        const int64_t believed = seen.column(model::kCpu)->used[other];
        if (stored_use != believed) {
            return fmt::format("{} holds {}m, the scheduler believes {}m", truth.name(row), stored_use, believed);
        }
    }
    for (const auto& record : server_.list("pods")) {
        const auto pod = *run::read_pod_here(*record->bytes);
        if (!pod.node.empty()) continue;
        if (seen.find_pod(pod.meta.uid) != ledger::kNone) return pod.meta.name + " is still assumed";
        if (!scheduler_->pending_pod(pod.meta.uid)) return pod.meta.name + " was lost";
        if (pod.spec->volumes.empty() &&
            sched::decide_pod(pod, truth, sched::default_profile()).verdict.chosen != ledger::kNoRow) {
            return pod.meta.name + " would fit and waits";
        }
    }
    for (const auto& record : server_.list(kReservations)) {
        const auto object = *model::read_reservation(*run::parse_here(*record->bytes));
        if (model::is_claimed(object)) {
            return object.meta.name + " is claimed for a pod that is not bound";
        }
        const auto known = seen.find_reservation(object.meta.uid);
        if (known == ledger::kNone) return object.meta.name + " was lost";
        if (seen.reservation(known).open() != truth.reservation(truth.find_reservation(object.meta.uid)).open()) {
            return object.meta.name + " is not to others what it is to the scheduler";
        }
        const auto owner = model::preemption_hold_owner(object);
        if (owner.empty() || model::is_final(object.phase)) continue;
        if (!scheduler_->pending_pod(owner)) return object.meta.name + " keeps room for nobody";
    }
    return "";
}

std::string Cluster::node_of(const std::string& pod) const {
    for (const auto& record : server_.list("pods")) {
        if (record->key.name == pod) {
            return std::string(base::find_string(SmallServer::document(*record), {"spec", "nodeName"}));
        }
    }
    return "gone";
}

std::vector<std::string> Cluster::names(const std::string& kind) const {
    std::vector<std::string> out;
    for (const auto& record : server_.list(kind)) out.push_back(record->key.name);
    return out;
}

}  // namespace berth::crash
