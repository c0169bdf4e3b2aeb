#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/disruption.h"
#include "model/pod.h"

namespace berth::ledger {

// What a priorityClassName means.
class PriorityClasses {
public:
    PriorityClasses();
    void put(model::PriorityClass made);
    void remove(std::string_view name);
    // nullptr: there is none of that name.
    const model::PriorityClass* find(std::string_view name) const;
    // Fills in what the API server would: priority and preemption policy of a pod that does not carry a priority.
    Status apply(model::Pod& pod) const;

private:
    std::map<std::string, model::PriorityClass, std::less<>> classes_;
};

}  // namespace berth::ledger
