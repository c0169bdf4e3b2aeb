#pragma once

#include <vector>

#include "model/labels.h"
#include "sched/nominated.h"

namespace berth::sched {

// Where one pod or reservation goes, and which reservations pay for it there. Nothing is held yet.
struct Decision {
    Verdict verdict;
    ledger::Charges charges;    // on the chosen row; the first is the nominated reservation
    ledger::WhichPtr which;     // of the row's parts
    model::Labels annotations;  // what the Binding writes into the pod along with its node
    // A pre-allocating reservation that no node has room for: where it waits, and for what.
    bool waiting = false;
    model::Resources missing;
};

// What the verdict means for reservations: who pays, what is written.
Decision decided(const Ask& ask, const View& ledger, Verdict verdict);
// The same beside nominated pods: what was promised to them is not for others.
Decision decided(const Ask& ask, Ledger& ledger, const Nominated& nominated, Verdict verdict);

// What the row lacks for it.
model::Resources missing_on(const model::PodSpec& spec, const View& ledger, Row row);

Decision decide_pod(const model::Pod& pod, const View& ledger, const Profile& profile);
// The same beside pods that wait for room elsewhere. A pod that has been waiting for room on a node goes there as soon
// as it can, whatever the scores.
Decision decide_pod(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated);
// A reservation passes every filter like a pod. When only room is lacking and it pre-allocates, it waits on the node
// with the least shortage, but not where others are going for a pod; one that is larger than every node stays pending.
Decision decide_reservation(const model::Reservation& reservation, const View& ledger, const Profile& profile);
Decision decide_reservation(const model::Reservation& reservation, Ledger& ledger, const Profile& profile,
                            const Nominated& nominated, uint64_t* looks = nullptr);

}  // namespace berth::sched
