#include "app/scheduler_run.h"

#include <algorithm>

#include "app/carry_out.h"
#include "base/json_view.h"
#include "base/log.h"
#include "cli/supporting.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/reader.h"
#include "model/reservation.h"

namespace berth::app {
namespace {

constexpr size_t kEventsPerPoll = 2048;
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
        {"Reservation", {"scheduling.koordinator.sh", "v1alpha1", "reservations"}},
        {"Pod", {"", "v1", "pods"}},
    };
    return all;
}

// All that is certain of an object that is gone.
model::Meta meta_of(JsonView view) {
    std::string trouble;
    return model::read_meta(model::Reader(view, trouble));
}

}  // namespace

SchedulerRun::SchedulerRun(std::unique_ptr<link::Server> server, sched::Scheduler::Profiles profiles,
                           const base::Clock& clock)
    : server_(std::move(server)),
      clock_(clock),
      scheduler_(std::move(profiles)),
      recorder_(*server_, "berth-scheduler") {
    for (const auto& source : sources()) {
        followed_.push_back({source.kind, server_->follow(source.resource, [this] { bell_.ring(); })});
    }
    thread_ = std::thread([this] { run(); });
}

SchedulerRun::~SchedulerRun() {
    stop_ = true;
    bell_.ring();
    thread_.join();
}

void SchedulerRun::run() {
    while (true) {
        bool busy = poll_feeds();
        busy = take_answers() || busy;
        if (stop_ && under_way_ == 0) return;
        const bool synced =
            std::all_of(followed_.begin(), followed_.end(), [](const Followed& followed) { return followed.synced; });
        if (synced && !stop_ && under_way_ < kMostUnderWay) {
            auto plans = scheduler_.step(clock_.now(), clock_.wall(), kDecisionsPerRound);
            busy = busy || !plans.empty();
            carry_out(std::move(plans));
        }
        if (busy) continue;
        base::Duration most = kLongestWait;
        if (const auto next = scheduler_.next_wake(); next && synced) {
            most = std::min(most, std::max(base::Duration::zero(), *next - clock_.now()));
        }
        bell_.wait(most);
    }
}

bool SchedulerRun::poll_feeds() {
    bool any = false;
    for (auto& followed : followed_) {
        for (const auto& event : followed.feed->poll(kEventsPerPoll)) {
            any = true;
            if (event.type == link::FeedEvent::Type::Synced) {
                followed.synced = true;
            } else {
                apply(followed.kind, event);
            }
        }
    }
    return any;
}

// A broken object harms itself only: it is logged, and whatever was held for it before stays held.
void SchedulerRun::apply(const std::string& kind, const link::FeedEvent& event) {
    const auto now = clock_.now();
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    base::JsonParser parser;
    const auto view = parser.parse(*event.text);
    if (!view) return base::log_error("Unreadable object", {{"error", view.error()}});
    const auto use = [&](auto read, auto put, auto remove) {
        if (gone) return remove(meta_of(*view));
        auto object = read(*view);
        if (!object) return base::log_error("Unreadable object", {{"error", object.error()}});
        object->meta.revision = event.revision;
        put(std::move(*object));
    };
    if (kind == "Node") {
        return use(
            model::read_node,
            [&](model::Node node) { scheduler_.put(std::make_shared<const model::Node>(std::move(node)), now); },
            [&](const model::Meta& meta) { scheduler_.remove_node(meta.name, now); });
    }
    if (kind == "Pod") {
        return use(
            model::read_pod, [&](model::Pod pod) { scheduler_.put(std::move(pod), now); },
            [&](const model::Meta& meta) { scheduler_.remove_pod(meta.uid, now); });
    }
    if (kind == "Reservation") {
        return use(
            model::read_reservation,
            [&](model::Reservation object) {
                scheduler_.put(std::make_shared<const model::Reservation>(std::move(object)), now);
            },
            [&](const model::Meta& meta) { scheduler_.remove_reservation(meta.uid, now); });
    }
    apply_supporting(kind, *view, gone);
}

void SchedulerRun::apply_supporting(const std::string& kind, JsonView view, bool gone) {
    if (gone) {
        const model::Meta meta = meta_of(view);
        cli::remove_supporting(kind, meta.ns, meta.name, scheduler_.ledger());
    } else if (const auto put = cli::put_supporting(kind, view, scheduler_.ledger()); !put) {
        return base::log_error("Unreadable object", {{"error", put.error()}});
    }
    scheduler_.happened(kind == "Namespace" ? sched::Change::Namespace : sched::Change::Volume, clock_.now());
}

void SchedulerRun::carry_out(std::vector<sched::Plan> plans) {
    for (auto& plan : plans) {
        ++under_way_;
        auto request = request_for(plan, clock_.wall());
        server_->send(std::move(request), [this, plan = std::move(plan)](Result<link::Reply> reply) mutable {
            {
                const std::lock_guard lock(answers_mutex_);
                answers_.push_back({std::move(plan), std::move(reply)});
            }
            bell_.ring();
        });
    }
}

bool SchedulerRun::take_answers() {
    std::vector<Answer> answers;
    {
        const std::lock_guard lock(answers_mutex_);
        answers.swap(answers_);
    }
    for (const auto& [plan, reply] : answers) {
        --under_way_;
        const auto outcome = outcome_of(plan, reply);
        if (const auto* read = std::get_if<sched::ReadPod>(&plan); read && reply) {
            if (reply->code == 404) scheduler_.remove_pod(read->uid, clock_.now());
            if (reply->ok()) {
                apply("Pod", {link::FeedEvent::Type::Put, std::make_shared<const std::string>(reply->body)});
            }
        }
        record(recorder_, plan, outcome, clock_.wall());
        auto further = scheduler_.outcome(plan, outcome, clock_.now());
        if (!stop_) carry_out(std::move(further));
    }
    return !answers.empty();
}

}  // namespace berth::app
