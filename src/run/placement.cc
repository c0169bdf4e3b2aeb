#include "run/placement.h"

#include <algorithm>

namespace berth::run {

void tell(Placement& answer, const sched::Strikes& strikes, const ledger::View& ledger) {
    for (ledger::Row row = 0; row < ledger.rows(); ++row) {
        if (!ledger.alive(row)) continue;
        if (const auto* refusal = strikes.why(row)) answer.rejected[std::string(ledger.name(row))] = refusal->reasons;
    }
}

void tell(Placement& answer, const sched::Verdict& verdict, const ledger::View& ledger) {
    for (size_t i = 0; i < verdict.feasible.size(); ++i) {
        const std::string name(ledger.name(verdict.feasible[i]));
        answer.feasible.push_back(name);
        if (!verdict.scores.empty()) answer.scores[name] = verdict.scores[i];
        if (!verdict.reservation_scores.empty()) answer.reservation_scores[name] = verdict.reservation_scores[i];
    }
    std::sort(answer.feasible.begin(), answer.feasible.end());
    tell(answer, verdict.strikes, ledger);
    answer.error = verdict.fault;
}

}  // namespace berth::run
