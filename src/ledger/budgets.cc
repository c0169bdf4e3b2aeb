#include "ledger/budgets.h"

namespace berth::ledger {

void Budgets::put(Ptr budget) {
    if (known_.put(std::move(budget))) sorted_ = known_.sorted();
}

void Budgets::remove(std::string_view full_name, std::string_view uid) {
    if (known_.remove(full_name, uid)) sorted_ = known_.sorted();
}

}  // namespace berth::ledger
