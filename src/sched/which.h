#pragma once

#include "sched/ask.h"

namespace berth::sched {

// Which ones of the row's parts the ask gets, where the filters have let it pass and these charges are its own;
// nullptr: none, as for almost every ask.
ledger::WhichPtr which_on(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges);

// Whether it may have these, where it is charged so.
bool may_have(const model::Which& which, const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges);

// Whether it has to get any.
bool wants_parts(const Ask& ask, const View& ledger, Row row);
// Whether it has to get one that it has not.
bool lacks_parts(const Ask& ask, const View& ledger, Row row, const ledger::WhichPtr& which);
// Whether all that it has to get is there.
bool finds_parts(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges);

}  // namespace berth::sched
