#include "bench/core.h"

#include <fmt/format.h>
#include <jemalloc/jemalloc.h>
#include <malloc.h>

#include <ctime>
#include <map>

#include "bench/measure.h"
#include "sched/credit.h"
#include "sched/decide.h"
#include "sched/fast/decider.h"
#include "sched/preempt.h"
#include "sched/shares.h"
#include "sched/which.h"

#pragma weak mallctl

namespace berth::bench {
namespace {

using base::system_clock;
using ledger::Ledger;
using ledger::View;

// What this thread has taken and not given back. The program has jemalloc; tests and sanitizers have another allocator.
size_t heap_bytes() {
    if (mallctl == nullptr) {
        const auto info = mallinfo2();
        return info.uordblks + info.hblkhd;
    }
    const auto reading = [](const char* name) {
        uint64_t bytes = 0;
        size_t size = sizeof bytes;
        CHECK(mallctl(name, &bytes, &size, nullptr, 0) == 0);
        return bytes;
    };
    return reading("thread.allocated") - reading("thread.deallocated");
}

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Pods by number; only what differs between two pods is written anew.
class Pods {
public:
    Pods() {
        pod_.meta.ns = "default";
        pod_.meta.uid = uid_of(0);
    }
    const model::Pod& make(size_t number, SharedSpec spec) {
        pod_.meta.uid = uid_of(number);
        pod_.meta.name = "web-5d4f8b9c7-";
        for (size_t i = 0, rest = number; i < 5; ++i, rest /= 26) pod_.meta.name += static_cast<char>('a' + rest % 26);
        pod_.meta.labels = spec->labels;
        pod_.spec = std::move(spec);
        return pod_;
    }
    // A UUID: the number, stirred.
    static std::string uid_of(size_t number) {
        static constexpr char kDigits[] = "0123456789abcdef";
        std::string uid = "00000000-0000-4000-8000-000000000000";
        base::Random random(number);
        const uint64_t bits = random.next();
        for (size_t i = 0; i < 8; ++i) uid[i] = kDigits[bits >> (4 * i) & 15];
        for (size_t i = 0; i < 12; ++i) uid[24 + i] = kDigits[number >> (4 * i) & 15];
        return uid;
    }

private:
    model::Pod pod_;
};

class Run {
public:
    Run(const CoreWorkload& workload, const BenchOptions& options)
        : workload_(workload),
          nodes_(options.nodes > 0 ? options.nodes : workload.nodes),
          initial_(options.initial > 0 ? options.initial : workload.initial),
          pods_(options.pods > 0 ? options.pods : workload.pods) {
        if (!workload.shares) return;
        ledger_.count_spaces();
        shares_ = std::make_unique<sched::Shares>(share::Settings());
    }

    Result<JsonObject> measure() {
        const size_t heap_before = heap_bytes();
        for (size_t i = 0; i < static_cast<size_t>(nodes_); ++i) {
            ledger_.put(std::make_shared<const model::Node>(workload_.node(i)));
        }
        bytes_per_node_ = static_cast<double>(heap_bytes() - heap_before) / static_cast<double>(nodes_);
        if (workload_.prepare) workload_.prepare(ledger_);
        const auto& first = workload_.initial_spec ? workload_.initial_spec : workload_.spec;
        if (first) warm_up(first(0));
        heap_before_pods_ = heap_bytes();
        for (size_t i = 0; first && i < static_cast<size_t>(initial_); ++i) decide(first(i));
        if (unplaced_ > 0 && !workload_.may_fail) return base::internal("the initial pods do not fit");
        unplaced_ = 0;
        decide_for_a_second();
        if (unplaced_ > 0 && !workload_.may_fail) return base::internal(fmt::format("{} pods did not fit", unplaced_));
        if (unsupplied_ > 0 && workload_.must_draw) {
            return base::internal(fmt::format("{} of {} pods found no reservation", unsupplied_, decisions_));
        }
        return fields();
    }

private:
    // The scheduler's own memory is not the pods'.
    void warm_up(const SharedSpec& spec) {
        const model::Pod& pod = maker_.make(0, ledger_.intern(spec));
        for (int i = 0; i < 2; ++i) decider_.choose(pod, ledger_);
    }

    void decide(const SharedSpec& spec) {
        const model::Pod& pod = maker_.make(next_++, ledger_.intern(spec));
        const bool sampled = next_ % kSample == 0;
        const auto start = sampled ? system_clock().now() : base::Instant();
        const bool may_start = !shares_ || deserves(pod);
        const ledger::Row row = may_start ? decider_.choose(pod, ledger_) : ledger::kNoRow;
        if (row == ledger::kNoRow) {
            const auto ask = sched::ask_for(pod, ledger_);
            const auto verdict = sched::decide(ask, ledger_, sched::default_profile());
            diagnosed_ += sched::diagnosis(verdict.strikes, ledger_).size();
            if (!workload_.preempts || !take_room(ask, verdict.strikes)) ++unplaced_;
        } else {
            const auto charges = decider_.charges(pod, ledger_, row);
            unsupplied_ += charges.empty();
            const bool bound = pod.spec->binds_cores() || pod.spec->devices.asks();
            auto which = bound ? sched::which_on(sched::ask_on(pod, ledger_, row), ledger_, row, charges) : nullptr;
            if (bound && !which) ++unplaced_;
            const ledger::PodIndex index = ledger_.assume(pod, row, charges, std::move(which));
            if (shares_) ledger_.see_bound(index);
        }
        if (sampled) latencies_.add(system_clock().now() - start);
    }

    // It has just come, and whoever went since has left its share to others.
    bool deserves(const model::Pod& pod) {
        ledger_.spaces()->await(pod.meta.uid, pod.spec, true);
        shares_->follow(ledger_, {});
        return shares_->refusal(ledger_, *pod.spec, pod.meta.uid).empty();
    }

    // Victims are gone at once.
    bool take_room(const sched::Ask& ask, const sched::Strikes& strikes) {
        const auto found = sched::preempt(ask, ledger_, sched::default_profile(), strikes, {}, costs_);
        if (!found.victims) return false;
        auto& evicted = evicted_[ask.pod->meta.uid];
        for (const auto index : found.victims->pods) evicted.emplace_back(ledger_.pod(index).uid.text());
        for (const auto& uid : evicted) ledger_.remove_pod(uid);
        ledger_.assume(*ask.pod, found.victims->row, {});
        return true;
    }

    void remove(const std::string& uid) {
        const auto evicted = evicted_.extract(uid);
        if (evicted.empty()) return ledger_.remove_pod(uid);
        const ledger::Row row = ledger_.pod(ledger_.find_pod(uid)).row;
        ledger_.remove_pod(uid);
        model::Pod back = maker_.make(0, ledger_.intern(workload_.initial_spec(0)));
        for (const auto& victim : evicted.mapped()) {
            back.meta.uid = victim;
            ledger_.assume(back, row, {});
        }
    }

    void decide(std::shared_ptr<const model::Reservation> reservation) {
        const bool sampled = ++next_ % kSample == 0;
        const auto start = sampled ? system_clock().now() : base::Instant();
        ledger_.put(reservation);
        const ledger::Row row = decider_.choose(*reservation, ledger_);
        if (row == ledger::kNoRow) {
            ++unplaced_;
        } else {
            ledger_.assume_reservation(ledger_.find_reservation(reservation->meta.uid), row, false);
        }
        if (sampled) latencies_.add(system_clock().now() - start);
    }

    void decide_next() {
        if (workload_.reservation) {
            decide(workload_.reservation(decisions_));
        } else {
            decide(workload_.spec(decisions_));
        }
    }

    void remove_oldest(size_t number) {
        if (workload_.reservation) {
            ledger_.remove_reservation(workload_.reservation(number)->meta.uid);
        } else {
            remove(Pods::uid_of(first_ + number));
        }
    }

    void decide_for_a_second() {
        first_ = next_;
        unsupplied_ = 0;
        const auto pods = static_cast<size_t>(pods_);
        latencies_ = Latencies();
        const double cpu = cpu_seconds();
        const auto start = system_clock().now();
        base::Duration elapsed{};
        while (decisions_ < pods || elapsed < std::chrono::seconds(1)) {
            if (workload_.churn) workload_.churn(ledger_, decisions_);
            if (decisions_ >= pods) remove_oldest(decisions_ - pods);
            decide_next();
            ++decisions_;
            if (decisions_ == pods) heap_at_peak_ = heap_bytes();
            if (decisions_ % kSample == 0 || decisions_ == pods) elapsed = system_clock().now() - start;
        }
        elapsed_ = elapsed;
        cpu_ = cpu_seconds() - cpu;
    }

    JsonObject fields() const {
        const double seconds = std::chrono::duration<double>(elapsed_).count();
        const auto decisions = static_cast<double>(decisions_);
        const double per_pod =
            static_cast<double>(heap_at_peak_ - heap_before_pods_) / static_cast<double>(initial_ + pods_);
        return {{"mode", "core"},
                {"nodes", nodes_},
                {"pods", pods_},
                {"decisions_per_s", rounded(decisions / seconds)},
                {"p50_us", rounded(latencies_.percentile(50))},
                {"p99_us", rounded(latencies_.percentile(99))},
                {"cpu_us_per_pod", rounded(cpu_ * 1e6 / decisions)},
                {"bytes_per_node", rounded(bytes_per_node_)},
                {"bytes_per_pod", rounded(per_pod)},
                {"rss_mb", rounded(resident_mb())}};
    }

    static constexpr size_t kSample = 8;  // one decision of so many is timed: reading the clock costs time too

    const CoreWorkload& workload_;
    int64_t nodes_, initial_, pods_;
    Ledger ledger_;
    sched::fast::Decider decider_{sched::default_profile()};
    sched::CostMemory costs_;
    std::unique_ptr<sched::Shares> shares_;
    std::map<std::string, std::vector<std::string>> evicted_;  // uids, by the pod they went for
    Pods maker_;
    Latencies latencies_;
    size_t next_ = 0;
    size_t first_ = 0;  // of the pods that are measured
    size_t unsupplied_ = 0;
    size_t decisions_ = 0;
    size_t unplaced_ = 0;
    size_t diagnosed_ = 0;
    size_t heap_before_pods_ = 0;
    size_t heap_at_peak_ = 0;
    double bytes_per_node_ = 0;
    double cpu_ = 0;
    base::Duration elapsed_{};
};

}  // namespace

Result<JsonObject> run_core(const CoreWorkload& workload, const BenchOptions& options) {
    if (!options.mode.empty() && options.mode != "core") {
        return base::bad_request(fmt::format("this workload has no mode \"{}\", only core", options.mode));
    }
    return Run(workload, options).measure();
}

model::Node plain_node(size_t number) {
    model::Node node;
    node.meta.name = fmt::format("node-{:06}", number);
    node.meta.labels.set("kubernetes.io/hostname", node.meta.name);
    node.meta.labels.set("topology.kubernetes.io/zone", fmt::format("zone{}", number % 3 + 1));
    node.allocatable = model::Resources{{model::kCpu, 4000}, {model::kMemory, int64_t{32} << 30}, {model::kPods, 110}};
    return node;
}

model::PodSpec plain_spec() {
    model::PodSpec spec;
    spec.ns = "default";
    spec.labels.set("app", "web");
    spec.requests = model::Resources{{model::kCpu, 100}, {model::kMemory, int64_t{500} << 20}, {model::kPods, 1}};
    spec.scoring_cpu_milli = 100;
    spec.scoring_memory = int64_t{500} << 20;
    spec.scheduler_name = "default-scheduler";
    return spec;
}

}  // namespace berth::bench
