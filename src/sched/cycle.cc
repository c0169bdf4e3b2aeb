#include "sched/cycle.h"

namespace berth::sched {

Decision decide_pod(const model::Pod& pod, const Ledger& ledger, const Profile& profile) {
    const Ask ask = ask_for(pod, ledger);
    Decision decision{decide(ask, ledger, profile), {}};
    const Row chosen = decision.verdict.chosen;
    const Credit* credit = chosen == ledger::kNoRow ? nullptr : ask.credit(chosen);
    if (credit) decision.charges.push_back({credit->matched.front(), pod.spec->requests});
    return decision;
}

Decision decide_reservation(const model::Reservation& reservation, const Ledger& ledger, const Profile& profile) {
    return {decide(ask_for(reservation), ledger, profile), {}};
}

}  // namespace berth::sched
