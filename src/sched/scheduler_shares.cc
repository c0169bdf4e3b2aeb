// The half of the scheduler that asks whether a pod's namespace may have more.
#include <algorithm>
#include <utility>

#include "sched/scheduler.h"
#include "sched/shares.h"

namespace berth::sched {
namespace {

// A pod that its share lets start, and that no node takes though there is room in all, is asked for so long.
constexpr base::Duration kAskedFor = std::chrono::minutes(5);

bool by_share(const Refusal& refusal) {
    return refusal.plugin == PluginId::ShareFit;
}

// Nothing that others could leave would make room for it: every node is closed to it, or too small.
bool fits_no_node(const model::PodSpec& spec, const View& ledger, const Strikes& strikes) {
    for (Row row = strikes.begin(); row < strikes.end(); ++row) {
        const Refusal* why = strikes.why(row);
        if (!ledger.alive(row)) continue;
        if (why == nullptr) return false;
        if (why->unresolvable) continue;
        bool large_enough = true;
        spec.requests.for_each([&](model::ResourceId id, int64_t amount) {
            const auto* column = ledger.column(id);
            large_enough = large_enough && (amount <= 0 || (column != nullptr && amount <= column->allocatable[row]));
        });
        if (large_enough) return false;
    }
    return strikes.refused() == nullptr || strikes.refused()->unresolvable;
}

}  // namespace

bool refused_by_share(const Strikes& strikes) {
    if (strikes.refused() != nullptr) return by_share(*strikes.refused());
    bool any = false;
    strikes.each_refusal([&](const Refusal& refusal, size_t) { any = any || by_share(refusal); });
    return any;
}

// Whether some node would take it, now or when others have left, whatever its share is.
bool Scheduler::may_stand_anywhere(const Ask& ask, const Profile& profile) {
    return !fits_no_node(*ask.spec, ledger_, filter(ask, ledger_, profile, 0, static_cast<Row>(ledger_.rows())));
}

// It is asked for, unless others' gates hold it.
void Scheduler::await(const model::Pod& pod) {
    if (!shares_ || ledger_.find_pod(pod.meta.uid) != ledger::kNone) return;
    const bool counts =
        std::all_of(pod.gates.begin(), pod.gates.end(), [](const auto& gate) { return gate == model::kShareGate; });
    ledger_.spaces()->await(pod.meta.uid, pod.spec, counts);
}

void Scheduler::forget_waiting(std::string_view uid) {
    if (!shares_) return;
    ledger_.spaces()->forget(uid);
    shares_->forget(uid);
    shares_->end_promise(uid);
}

// A pod that is asked about is asked for, too, until that is answered; whether it was before.
std::optional<bool> Scheduler::begin_passing(const model::Pod& pod) {
    if (!shares_ || ledger_.find_pod(pod.meta.uid) != ledger::kNone) return std::nullopt;
    const auto before = ledger_.spaces()->counted(pod.meta.uid);
    ledger_.spaces()->await(pod.meta.uid, pod.spec, true);
    shares_->follow(ledger_, shares_wall_);
    return before;
}

void Scheduler::end_passing(std::string_view uid, std::optional<bool> before) {
    if (!shares_ || ledger_.find_pod(uid) != ledger::kNone) return;
    if (before) {
        ledger_.spaces()->set_counts(uid, *before);
    } else {
        ledger_.spaces()->forget(uid);
    }
}

// Whose turn it is, is asked for, and counted before it is decided.
const Shares* Scheduler::shares_for(const Attempt& attempt) {
    if (!shares_) return nullptr;
    const std::string& uid = attempt.pod.meta.uid;
    shares_->forget(uid);
    if (!evictions_.under_way(uid) && !attempt.demands<HoldAsked>()) shares_->end_promise(uid);
    ledger_.spaces()->set_counts(uid, true);
    shares_->follow(ledger_, shares_wall_);
    return shares_.get();
}

void Scheduler::refuse_share(Attempt& attempt, const Strikes& strikes, base::Instant now) {
    if (!shares_) return;
    const model::Pod& pod = attempt.pod;
    if (nominated_.contains(pod.meta.uid) || room_stands(pod.meta.uid)) shares_->promise(ledger_, pod, {});
    if (refused_by_share(strikes)) {
        attempt.roomless_since.reset();
        return shares_->refused(ledger_, pod);
    }
    if (!attempt.roomless_since) attempt.roomless_since = now;
    const bool long_enough = now - *attempt.roomless_since >= kAskedFor && shares_->has_room(ledger_, *pod.spec);
    if (long_enough || fits_no_node(*pod.spec, ledger_, strikes)) ledger_.spaces()->set_counts(pod.meta.uid, false);
}

// Those whose namespaces have come to deserve more, or to use less, are tried at once.
void Scheduler::follow_shares(base::Time wall) {
    if (!shares_) return;
    shares_wall_ = wall;
    shares_->follow(ledger_, wall);
    if (!shares_->anybody_waits()) return;
    for (const auto& uid : shares_->may_start(ledger_)) queue_.activate_one(uid);
}

}  // namespace berth::sched
