#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "sched/scheduler.h"
#include "share/answer.h"

namespace berth::run {

// The scheduler's numbers under kube-scheduler's names, so that its dashboards and alerts work. The scheduler's thread.
class SchedulerMetrics {
public:
    explicit SchedulerMetrics(base::Metrics& metrics);

    // A bind was answered at the pod's n-th attempt: its round began, and the pod first could be decided, that long
    // ago.
    void bound(const std::string& profile, base::Duration took, base::Duration waited, int attempts);
    // It was refused, or nobody knows.
    void failed(const std::string& profile, base::Duration took);
    // After a round of decisions: what was refused in it, and who waits now.
    void round(const sched::Scheduler& scheduler, base::Duration took);
    // What namespaces deserve, use, borrow and lend now.
    void shares(const std::vector<share::Account>& accounts);
    // Counts those who must go.
    void planned(const std::vector<sched::Plan>& plans);

private:
    struct Result {
        base::Counter& attempts;
        base::Histogram& duration;
    };
    Result& result(const std::string& result, const std::string& profile);
    base::Histogram& waited(int attempts);

    base::Metrics& metrics_;
    std::map<std::pair<std::string, std::string>, Result> results_;
    std::array<base::Histogram*, 16> waited_{};  // by attempts; the last is for more
    base::Histogram& attempts_;
    base::Gauge& active_;
    base::Gauge& backoff_;
    base::Gauge& unschedulable_;
    base::Gauge& gated_;
    base::Counter& preemptions_;
    base::Gauge& nodes_;
    base::Gauge& pods_;
    base::Histogram& victims_;
    sched::SchedulerCounts before_;
    struct Shown {
        base::Gauge* gauge = nullptr;
        uint64_t round = 0;
    };
    std::map<std::tuple<size_t, std::string, model::ResourceId>, Shown> shown_;  // of shares, by number and namespace
    uint64_t rounds_ = 0;
};

}  // namespace berth::run
