#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "model/consumer.h"
#include "model/quota.h"

namespace berth::share {

using model::ResourceId;
using model::Resources;

// What Consumers are guaranteed and may have, as amounts: percentages are of the parent's, at the top of the cluster's.
class Portions {
public:
    // Both outlive it.
    Portions(const std::vector<const model::Consumer*>& consumers, const Resources& capacity);
    // nullptr: there is no such Consumer.
    const model::Consumer* find(std::string_view name) const;
    // Of a parent that leads in a circle, or is not there, the cluster is meant.
    Resources reserved_of(std::string_view name) const;
    // Without what quotas say.
    Resources hard_of(std::string_view name) const;
    bool circular(std::string_view name) const;

private:
    const Resources& capacity_;
    std::vector<const model::Consumer*> consumers_;
    std::map<std::string_view, uint32_t> known_;
    std::vector<Resources> reserved_, hard_;
    std::vector<uint8_t> circles_;
};

// Of limits on the same thing the smallest counts: what an unscoped quota allows is put into `least`.
void heed(const model::ResourceQuota& quota, Resources& least);

// limits.* may add up to so many times what there is of the resource itself.
void add_limits(Resources& capacity, double factor);

}  // namespace berth::share
