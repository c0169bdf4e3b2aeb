#pragma once

#include <vector>

#include "sched/decide.h"

namespace berth::sched {

// Where one pod or reservation goes, and which reservations pay for it there. Nothing is held yet.
struct Decision {
    Verdict verdict;
    std::vector<ledger::Charge> charges;  // on the chosen row; the first is the nominated reservation
};

Decision decide_pod(const model::Pod& pod, const Ledger& ledger, const Profile& profile);
Decision decide_reservation(const model::Reservation& reservation, const Ledger& ledger, const Profile& profile);

}  // namespace berth::sched
