#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "model/meta.h"
#include "model/workloads.h"

namespace berth::ledger {

// Services and controllers by the pods they select.
class Workloads {
public:
    bool empty() const { return by_name_.empty(); }
    void put(model::Workload workload);
    void remove(model::WorkloadKind kind, std::string_view ns, std::string_view name);

    // The pods that belong with this one: labels of every Service that selects it, and the selector of its controller
    // when that is a ReplicationController, ReplicaSet or StatefulSet. Matches everything: it belongs with none.
    Selector siblings(std::string_view ns, const Labels& labels, const model::OwnerRef* controller) const;

private:
    const model::Workload* controller_of(std::string_view ns, const model::OwnerRef& controller) const;
    std::string shelf(const model::Workload& service) const;

    base::StringMap<model::Workload> by_name_;                     // "<kind>/<namespace>/<name>"
    base::StringMap<std::vector<std::string>> services_by_label_;  // keys of by_name_
};

}  // namespace berth::ledger
