#include "share/portions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "share/above.h"

namespace berth::share {

Portions::Portions(const std::vector<const model::Consumer*>& consumers, const Resources& capacity)
    : capacity_(capacity), consumers_(consumers), reserved_(consumers.size()), hard_(consumers.size()) {
    std::vector<Named> names;
    for (uint32_t i = 0; i < consumers.size(); ++i) {
        known_.emplace(consumers[i]->meta.name, i);
        names.push_back({consumers[i]->meta.name, consumers[i]->parent});
    }
    Above ways = above(names);
    circles_ = std::move(ways.circles);
    for (size_t next = ways.upwards.size(); next-- > 0;) {  // parents first
        const uint32_t i = ways.upwards[next], parent = ways.parent[i];
        const auto& own = *consumers[i];
        reserved_[i] = own.reserved.percents.empty()
                           ? own.reserved.amounts
                           : own.reserved.of(parent == kNobody ? capacity : reserved_[parent]);
        if (own.hard.percents.empty()) {
            hard_[i] = own.hard.amounts;
            continue;
        }
        Resources whole = capacity;
        if (parent != kNobody) hard_[parent].for_each([&](ResourceId id, int64_t amount) { whole.set(id, amount); });
        hard_[i] = own.hard.of(whole);
    }
}

const model::Consumer* Portions::find(std::string_view name) const {
    const auto found = known_.find(name);
    return found == known_.end() ? nullptr : consumers_[found->second];
}

Resources Portions::reserved_of(std::string_view name) const {
    const auto found = known_.find(name);
    return found == known_.end() ? capacity_ : reserved_[found->second];
}

Resources Portions::hard_of(std::string_view name) const {
    const auto found = known_.find(name);
    return found == known_.end() ? capacity_ : hard_[found->second];
}

bool Portions::circular(std::string_view name) const {
    const auto found = known_.find(name);
    return found != known_.end() && circles_[found->second] != 0;
}

void heed(const model::ResourceQuota& quota, Resources& least) {
    if (quota.scoped) return;
    quota.hard.for_each(
        [&](ResourceId id, int64_t amount) { least.set(id, std::min(amount, least.get(id, INT64_MAX))); });
}

void add_limits(Resources& capacity, double factor) {
    for (const auto* name : {"cpu", "memory", "ephemeral-storage"}) {
        const ResourceId id = *model::intern_resource(name);
        const ResourceId limit = *model::intern_resource(fmt::format("limits.{}", name));
        const double most = static_cast<double>(capacity.get(id)) * factor;
        capacity.set(limit, most >= 9e18 ? INT64_MAX : static_cast<int64_t>(most));
    }
}

}  // namespace berth::share
