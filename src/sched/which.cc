#include "sched/which.h"

#include "sched/plugins/numa.h"

namespace berth::sched {

bool wants_parts(const Ask& ask, const View& ledger, Row row) {
    return plugins::wants_cores(ask, ledger, row);
}

bool finds_parts(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges) {
    return !wants_parts(ask, ledger, row) ||
           plugins::cores_on(ask, ledger, row, charges).no == plugins::CoreAnswer::No::Open;
}

ledger::WhichPtr which_on(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges) {
    if (!wants_parts(ask, ledger, row)) return nullptr;
    model::Which which;
    which.cores = plugins::cores_on(ask, ledger, row, charges).record;
    return which.empty() ? nullptr : std::make_shared<const model::Which>(std::move(which));
}

}  // namespace berth::sched
