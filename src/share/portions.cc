#include "share/portions.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::share {

Portions::Portions(const std::vector<const model::Consumer*>& consumers, const Resources& capacity)
    : capacity_(capacity) {
    for (const auto* consumer : consumers) known_.emplace(consumer->meta.name, consumer);
}

const model::Consumer* Portions::find(std::string_view name) const {
    const auto found = known_.find(name);
    return found == known_.end() ? nullptr : found->second;
}

Resources Portions::reserved_of(std::string_view name, size_t depth) const {
    const auto* consumer = find(name);
    if (consumer == nullptr || depth > known_.size()) return capacity_;
    const bool top = consumer->parent.empty() || find(consumer->parent) == nullptr;
    if (consumer->reserved.percents.empty()) return consumer->reserved.amounts;
    return consumer->reserved.of(top ? capacity_ : reserved_of(consumer->parent, depth + 1));
}

Resources Portions::hard_of(std::string_view name, size_t depth) const {
    const auto* consumer = find(name);
    if (consumer == nullptr || depth > known_.size()) return capacity_;
    if (consumer->hard.percents.empty()) return consumer->hard.amounts;
    Resources whole = capacity_;
    if (!consumer->parent.empty() && find(consumer->parent) != nullptr) {
        hard_of(consumer->parent, depth + 1).for_each([&](ResourceId id, int64_t amount) { whole.set(id, amount); });
    }
    return consumer->hard.of(whole);
}

bool Portions::circular(std::string_view name) const {
    const auto* at = find(name);
    for (size_t steps = 0; at != nullptr && !at->parent.empty(); ++steps) {
        if (steps > known_.size()) return true;
        at = find(at->parent);
    }
    return false;
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
