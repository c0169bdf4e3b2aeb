#include "ledger/budgets.h"

namespace berth::ledger {

void Budgets::put(Ptr budget) {
    if (!known_.put(std::move(budget))) return;
    sorted_ = known_.sorted();
    ++version_;
}

void Budgets::remove(std::string_view full_name, std::string_view uid) {
    if (!known_.remove(full_name, uid)) return;
    sorted_ = known_.sorted();
    ++version_;
}

}  // namespace berth::ledger
