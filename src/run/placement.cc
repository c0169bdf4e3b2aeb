#include "run/placement.h"

#include <algorithm>
#include <utility>

namespace berth::run {

std::span<const ledger::Row> RowsByName::of(const ledger::View& ledger) {
    const uint64_t epoch = ledger.changes().member_epoch();
    if (std::exchange(seen_, epoch) == epoch) return rows_;
    rows_.clear();
    for (ledger::Row row = 0; row < ledger.rows(); ++row) {
        if (ledger.alive(row)) rows_.push_back(row);
    }
    std::sort(rows_.begin(), rows_.end(),
              [&](ledger::Row a, ledger::Row b) { return ledger.name(a) < ledger.name(b); });
    return rows_;
}

void tell(Placement& answer, const sched::Strikes& strikes, const ledger::View& ledger, RowsByName& order) {
    for (const ledger::Row row : order.of(ledger)) {
        const auto* refusal = strikes.why(row);
        if (refusal) answer.rejected.emplace_hint(answer.rejected.end(), ledger.name(row), refusal->reasons);
    }
}

void tell(Placement& answer, const sched::Verdict& verdict, const ledger::View& ledger, RowsByName& order) {
    constexpr size_t kClosed = SIZE_MAX;
    std::vector<size_t> places(ledger.rows(), kClosed);
    for (size_t i = 0; i < verdict.feasible.size(); ++i) places[verdict.feasible[i]] = i;
    answer.feasible.reserve(verdict.feasible.size());
    for (const ledger::Row row : order.of(ledger)) {
        const size_t i = places[row];
        if (i == kClosed) continue;
        const std::string& name = answer.feasible.emplace_back(ledger.name(row));
        if (!verdict.scores.empty()) answer.scores.emplace_hint(answer.scores.end(), name, verdict.scores[i]);
        if (verdict.reservation_scores.empty()) continue;
        answer.reservation_scores.emplace_hint(answer.reservation_scores.end(), name, verdict.reservation_scores[i]);
    }
    tell(answer, verdict.strikes, ledger, order);
    answer.error = verdict.fault;
}

}  // namespace berth::run
