#include "run/scheduler_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace berth::run {
namespace {

// From 1 ms, each twice the one before; the bounds of kube-scheduler.
constexpr std::array<double, 15> kSeconds{0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128,
                                          0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384};
// From 10 ms, each twice the one before.
constexpr std::array<double, 20> kWaited{0.01,  0.02,  0.04,  0.08,  0.16,   0.32,   0.64,   1.28,    2.56,    5.12,
                                         10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36, 1310.72, 2621.44, 5242.88};
constexpr std::array<double, 5> kAttempts{1, 2, 4, 8, 16};
constexpr std::array<double, 7> kVictims{1, 2, 4, 8, 16, 32, 64};
constexpr std::string_view kPending = "scheduler_pending_pods";
constexpr std::string_view kPendingHelp = "Pods that wait for a decision, by queue.";
constexpr std::string_view kCache = "scheduler_cache_size";
constexpr std::string_view kCacheHelp = "What the scheduler knows of; its pods are those on nodes.";

}  // namespace

SchedulerMetrics::SchedulerMetrics(base::Metrics& metrics)
    : metrics_(metrics),
      attempts_(
          metrics.histogram("scheduler_pod_scheduling_attempts", "Attempts until a pod was bound.", {}, kAttempts)),
      active_(metrics.gauge(kPending, kPendingHelp, {{"queue", "active"}})),
      backoff_(metrics.gauge(kPending, kPendingHelp, {{"queue", "backoff"}})),
      unschedulable_(metrics.gauge(kPending, kPendingHelp, {{"queue", "unschedulable"}})),
      gated_(metrics.gauge(kPending, kPendingHelp, {{"queue", "gated"}})),
      preemptions_(
          metrics.counter("scheduler_preemption_attempts_total", "Searches for pods that might go for another.")),
      nodes_(metrics.gauge(kCache, kCacheHelp, {{"type", "nodes"}})),
      pods_(metrics.gauge(kCache, kCacheHelp, {{"type", "pods"}})),
      victims_(metrics.histogram("scheduler_preemption_victims", "Pods that had to go for one.", {}, kVictims)) {}

SchedulerMetrics::Result& SchedulerMetrics::result(const std::string& result, const std::string& profile) {
    const auto found = results_.find({result, profile});
    if (found != results_.end()) return found->second;
    const base::Metrics::Labels labels{{"result", result}, {"profile", profile}};
    return results_
        .emplace(
            std::pair(result, profile),
            Result{metrics_.counter("scheduler_schedule_attempts_total", "Attempts by result.", labels),
                   metrics_.histogram("scheduler_scheduling_attempt_duration_seconds",
                                      "From the decision to the bind's answer, or to the refusal.", labels, kSeconds)})
        .first->second;
}

base::Histogram& SchedulerMetrics::waited(int attempts) {
    const size_t most = waited_.size() - 1;
    const size_t place = std::min(static_cast<size_t>(attempts), most);
    if (!waited_[place]) {
        waited_[place] = &metrics_.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds", "From when a pod could be decided to its bind's answer.",
            {{"attempts", place == most ? fmt::format("{}+", most) : std::to_string(place)}}, kWaited);
    }
    return *waited_[place];
}

void SchedulerMetrics::bound(const std::string& profile, base::Duration took, base::Duration since_ready,
                             int attempts) {
    Result& of = result("scheduled", profile);
    of.attempts.add();
    of.duration.observe(std::chrono::duration<double>(took).count());
    attempts_.observe(attempts);
    waited(attempts).observe(std::chrono::duration<double>(since_ready).count());
}

void SchedulerMetrics::failed(const std::string& profile, base::Duration took) {
    Result& of = result("error", profile);
    of.attempts.add();
    of.duration.observe(std::chrono::duration<double>(took).count());
}

void SchedulerMetrics::round(const sched::Scheduler& scheduler, base::Duration took) {
    const auto sizes = scheduler.queue().sizes();
    active_.set(static_cast<double>(sizes.active));
    backoff_.set(static_cast<double>(sizes.backoff));
    unschedulable_.set(static_cast<double>(sizes.unschedulable));
    gated_.set(static_cast<double>(sizes.gated));
    nodes_.set(static_cast<double>(scheduler.ledger().node_count()));
    pods_.set(static_cast<double>(scheduler.ledger().pod_count()));
    const auto& counts = scheduler.counts();
    const auto observe = [&](const std::string& name, const auto& now, auto& before) {
        for (const auto& [profile, count] : now) {
            for (uint64_t& seen = before[profile]; seen < count; ++seen) {
                Result& of = result(name, profile);
                of.attempts.add();
                of.duration.observe(std::chrono::duration<double>(took).count());
            }
        }
    };
    observe("unschedulable", counts.unschedulable, before_.unschedulable);
    observe("error", counts.errors, before_.errors);
    preemptions_.add(counts.preemptions - before_.preemptions);
    before_ = counts;
}

// An amount that nobody has any more is 0.
void SchedulerMetrics::shares(const std::vector<share::Account>& accounts) {
    struct Family {
        std::string_view name, help;
        const model::Resources& (*of)(const share::Account&);
    };
    static constexpr std::array<Family, 4> kFamilies{
        Family{"scheduler_share_deserved", "What the namespace may have now.",
               [](const share::Account& a) -> const model::Resources& { return a.share.deserved; }},
        Family{"scheduler_share_used", "What the namespace has.",
               [](const share::Account& a) -> const model::Resources& { return a.used; }},
        Family{"scheduler_share_borrowed", "What it deserves above its guarantee.",
               [](const share::Account& a) -> const model::Resources& { return a.borrowed; }},
        Family{"scheduler_share_lent", "What others have of its guarantee.",
               [](const share::Account& a) -> const model::Resources& { return a.lent; }}};
    ++rounds_;
    for (size_t i = 0; i < kFamilies.size(); ++i) {
        for (const auto& account : accounts) {
            kFamilies[i].of(account).for_each([&](model::ResourceId id, int64_t amount) {
                const std::string resource(model::resource_name(id));
                Shown& shown = shown_[{i, account.name, id}];
                if (shown.gauge == nullptr) {
                    shown.gauge = &metrics_.gauge(kFamilies[i].name, kFamilies[i].help,
                                                  {{"namespace", account.name}, {"resource", resource}});
                }
                shown.round = rounds_;
                const bool cores = id == model::kCpu || resource == "limits.cpu";
                shown.gauge->set(static_cast<double>(amount) / (cores ? 1000 : 1));
            });
        }
    }
    for (auto& [key, shown] : shown_) {
        if (shown.round != rounds_) shown.gauge->set(0);
    }
}

void SchedulerMetrics::planned(const std::vector<sched::Plan>& plans) {
    std::map<std::string_view, int> victims;
    for (const auto& plan : plans) {
        const auto* evict = std::get_if<sched::EvictPod>(&plan);
        if (evict && evict->step == sched::EvictPod::Step::Mark) ++victims[evict->by];
    }
    for (const auto& [preemptor, count] : victims) victims_.observe(count);
}

}  // namespace berth::run
