#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "ledger/objects.h"
#include "model/disruption.h"

namespace berth::ledger {

// How many pods of which group may be disturbed.
class Budgets {
public:
    using Ptr = std::shared_ptr<const model::PodDisruptionBudget>;

    void put(Ptr budget);
    void remove(std::string_view full_name, std::string_view uid);
    bool empty() const { return sorted_.empty(); }
    // Grows with every change.
    uint64_t version() const { return version_; }
    // By namespace and name.
    const std::vector<Ptr>& all() const { return sorted_; }

private:
    Objects<model::PodDisruptionBudget> known_;
    std::vector<Ptr> sorted_;
    uint64_t version_ = 0;
};

}  // namespace berth::ledger
