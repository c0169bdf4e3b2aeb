#pragma once

#include <string>
#include <vector>

#include "sched/nominated.h"

namespace berth::sched {

// While it lives, what nominated pods were promised of a row's cores and devices, and nobody has, is taken: those who
// leave for them still have the rest. Whoever is given parts of the row now leaves the promised ones alone, so that
// they are there when the others have left. E.g. cores 0-1 and 2-3; somebody who has 0 and 2 leaves for a pod that
// wants one whole core and was promised 0-1: 1 is given to nobody, 3 is.
class KeptParts {
public:
    // From the ask, who is given some; nothing is kept from one that gets none.
    KeptParts(const Ask& ask, Ledger& ledger, Row row, const Yielding& before);
    ~KeptParts();
    KeptParts(const KeptParts&) = delete;
    KeptParts& operator=(const KeptParts&) = delete;

private:
    Ledger& ledger_;
    std::vector<std::string> kept_;  // uids of those who stand there for them
};

}  // namespace berth::sched
