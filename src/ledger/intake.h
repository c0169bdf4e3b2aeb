#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "ledger/ledger.h"
#include "model/disruption.h"

// Objects that are not placed themselves but decide about pods: namespaces, workloads, storage, budgets, priority
// classes.
namespace berth::ledger {

// False: the kind is none of them. The revision counts where the document does not carry it.
Result<bool> put_supporting(std::string_view kind, JsonView object, Ledger& ledger, uint64_t revision = 0);
void remove_supporting(std::string_view kind, std::string_view ns, std::string_view name, Ledger& ledger);

// Claims that ask for no class get the default one, as the API server gives it: the newest, then the first name.
void default_storage_class(Ledger& ledger);

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
