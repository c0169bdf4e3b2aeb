#pragma once

#include "ledger/entries.h"

namespace berth::ledger {

// What a bound pod's annotations say it has; nullptr: nothing.
WhichPtr which_of(const model::Pod& pod);
inline bool same_which(const WhichPtr& a, const WhichPtr& b) {
    return a == b || (a && b && *a == *b);
}

}  // namespace berth::ledger
