#pragma once

#include <span>
#include <vector>

#include "base/error.h"
#include "model/consumer.h"
#include "model/quota.h"

namespace berth::model {

// What a Consumer is judged against.
struct ConsumerContext {
    std::span<const Consumer> others;  // without itself
    std::span<const ResourceQuota> quotas;
    std::span<const std::string> namespaces;
    Resources cluster;  // allocatable of all nodes; empty: there is no node yet, and sums are not judged
};

// reserved <= hard; guarantees of siblings fit what is above them (what shrinks is always allowed); hard is within the
// quotas of its namespace; parents exist, form no circle and own no namespace. Each cause names the key, what is asked
// for and what is available. `before`: the object as it is stored, null for a new one.
std::vector<base::Cause> consumer_faults(const Consumer& wanted, const Consumer* before,
                                         const ConsumerContext& context);

}  // namespace berth::model
