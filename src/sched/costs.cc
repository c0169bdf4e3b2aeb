#include "sched/costs.h"

#include <algorithm>

#include "sched/shares.h"

namespace berth::sched {

Cost cost_of(const Victims& victims, const View& ledger) {
    const auto& first = ledger.pod(victims.pods.front());
    int64_t sum = 0;
    for (const PodIndex pod : victims.pods) sum += int64_t{ledger.pod(pod).priority} + (int64_t{1} << 31);
    return {victims.violations, first.priority, sum, static_cast<int64_t>(victims.pods.size()), -first.started.nanos};
}

void CostMemory::Rows::follow(const Ask& ask, const View& ledger) {
    const auto& changes = ledger.changes();
    const uint64_t shares = ask.shares ? ask.shares->epoch(ledger) : 0;
    const bool known = changes.remembers(seen_) && budgets_ == ledger.budgets().version() && shares_ == shares;
    shares_ = shares;
    if (!known) entries_.assign(entries_.size(), Entry());
    entries_.resize(ledger.rows());
    if (known) changes.replay(seen_, [&](Row row) { entries_[row].state = State::Unknown; });
    seen_ = changes.sequence();
    budgets_ = ledger.budgets().version();
}

std::optional<Cost> CostMemory::Rows::cost(Row row, const VictimsBySums& sums, const View& ledger) {
    Entry& entry = entries_[row];
    if (entry.state == State::Unknown) {
        const RowAnswer answer = sums.answer(row);
        entry.state = answer.victims ? State::Known : State::Helpless;
        if (answer.victims) entry.cost = cost_of(*answer.victims, ledger);
    }
    if (entry.state == State::Helpless) return std::nullopt;
    return entry.cost;
}

CostMemory::Rows& CostMemory::rows_for(const Ask& ask, Ledger& ledger) {
    const auto spec = ledger.intern(ask.pod->spec);
    const auto found = std::find_if(used_.begin(), used_.end(), [&](const auto& rows) { return rows->spec_ == spec; });
    std::unique_ptr<Rows> rows;
    if (found == used_.end()) {
        rows = std::make_unique<Rows>();
        rows->spec_ = spec;
        rows->seen_ = ledger.changes().sequence();
        rows->budgets_ = ledger.budgets().version();
        if (used_.size() == kKept) used_.pop_back();
    } else {
        rows = std::move(*found);
        used_.erase(found);
    }
    rows->follow(ask, ledger);
    used_.insert(used_.begin(), std::move(rows));
    return *used_.front();
}

}  // namespace berth::sched
