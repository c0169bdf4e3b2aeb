#include "model/consumer_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/saturating.h"

namespace berth::model {
namespace {

class Judge {
public:
    Judge(const Consumer& wanted, const Consumer* before, const ConsumerContext& context)
        : wanted_(wanted), before_(before), context_(context) {
        for (const auto& other : context.others) known_.emplace(other.meta.name, &other);
    }

    std::vector<base::Cause> run() {
        judge_parent();
        const Resources reserved = reserved_of(wanted_), hard = wanted_.hard.of(context_.cluster);
        reserved.for_each([&](ResourceId id, int64_t asked) {
            if (hard.has(id) && asked > hard.get(id))
                add("spec.reserved", id, asked, "is more than hard", hard.get(id));
        });
        if (!context_.cluster.empty()) judge_siblings(reserved);
        judge_children();
        judge_quota(hard);
        return std::move(causes_);
    }

private:
    const Consumer* find(std::string_view name) const {
        if (name == wanted_.meta.name) return &wanted_;
        const auto found = known_.find(name);
        return found == known_.end() ? nullptr : found->second;
    }

    // Percentages are of the cluster, and below the top of the parent's guarantee. Parents may be many, and in a
    // circle.
    Resources reserved_of(const Consumer& consumer) const {
        std::vector<const Consumer*> chain;
        const Consumer* at = &consumer;
        while (at != nullptr && !at->reserved.percents.empty() && chain.size() <= context_.others.size()) {
            chain.push_back(at);
            at = at->parent.empty() ? nullptr : find(at->parent);
        }
        Resources whole = at == nullptr ? context_.cluster : at->reserved.amounts;
        for (auto below = chain.rbegin(); below != chain.rend(); ++below) whole = (*below)->reserved.of(whole);
        return whole;
    }

    void add(std::string_view field, ResourceId id, int64_t asked, std::string_view why, int64_t available) {
        const std::string at = fmt::format("{}[{}]", field, resource_name(id));
        causes_.push_back({"FieldValueInvalid",
                           fmt::format("Invalid value: \"{}\": {}: {} available", quota_text(id, asked), why,
                                       quota_text(id, available)),
                           at});
    }
    void refuse(std::string_view field, std::string_view value, std::string_view why) {
        causes_.push_back(
            {"FieldValueInvalid", fmt::format("Invalid value: \"{}\": {}", value, why), std::string(field)});
    }

    void judge_parent() {
        if (wanted_.parent.empty()) return;
        const Consumer* at = find(wanted_.parent);
        if (at == nullptr) return refuse("spec.parent", wanted_.parent, "there is no Consumer of this name");
        for (size_t steps = 0; at != nullptr && steps <= context_.others.size() + 1; ++steps) {
            if (at == &wanted_) return refuse("spec.parent", wanted_.parent, "it would be its own parent");
            at = at->parent.empty() ? nullptr : find(at->parent);
        }
        const auto& owned = context_.namespaces;
        if (std::find(owned.begin(), owned.end(), wanted_.parent) != owned.end())
            refuse("spec.parent", wanted_.parent, "it owns a namespace, so it cannot have children");
    }

    // The guarantees of all who have the same parent fit into the parent's, or the cluster.
    void judge_siblings(const Resources& reserved) {
        const Consumer* parent = wanted_.parent.empty() ? nullptr : find(wanted_.parent);
        if (!wanted_.parent.empty() && parent == nullptr) return;
        const Resources whole = parent == nullptr ? context_.cluster : reserved_of(*parent);
        Resources taken;
        for (const auto& other : context_.others) {
            if (other.parent == wanted_.parent) taken.add(reserved_of(other));
        }
        const Resources former =
            before_ != nullptr && before_->parent == wanted_.parent ? reserved_of(*before_) : Resources{};
        reserved.for_each([&](ResourceId id, int64_t asked) {
            const bool shrinks = former.has(id) && asked <= former.get(id);
            const int64_t available = std::max<int64_t>(0, base::saturating_subtract(whole.get(id), taken.get(id)));
            const bool unbounded =
                parent == nullptr && !whole.has(id) && (is_limit(resource_name(id)) || is_storage(resource_name(id)));
            if (asked > available && !shrinks && !unbounded)
                add("spec.reserved", id, asked,
                    parent == nullptr ? "is more than the cluster has left" : "is more than its parent has left",
                    available);
        });
    }

    void judge_children() {
        const bool has_children = std::any_of(context_.others.begin(), context_.others.end(),
                                              [&](const auto& other) { return other.parent == wanted_.meta.name; });
        const auto& owned = context_.namespaces;
        if (has_children && before_ == nullptr &&
            std::find(owned.begin(), owned.end(), wanted_.meta.name) != owned.end())
            refuse("metadata.name", wanted_.meta.name, "it owns a namespace, so it cannot have children");
    }

    void judge_quota(const Resources& hard) {
        Resources least;
        for (const auto& quota : context_.quotas) {
            if (quota.scoped || quota.meta.ns != wanted_.meta.name) continue;
            quota.hard.for_each(
                [&](ResourceId id, int64_t amount) { least.set(id, std::min(amount, least.get(id, INT64_MAX))); });
        }
        const Resources former = before_ != nullptr ? before_->hard.of(context_.cluster) : Resources{};
        hard.for_each([&](ResourceId id, int64_t asked) {
            if (!least.has(id) || asked <= least.get(id)) return;
            if (former.has(id) && asked <= former.get(id)) return;
            add("spec.hard", id, asked, "is more than the quota of its namespace", least.get(id));
        });
    }

    const Consumer& wanted_;
    const Consumer* before_;
    const ConsumerContext& context_;
    std::unordered_map<std::string_view, const Consumer*> known_;
    std::vector<base::Cause> causes_;
};

}  // namespace

std::vector<base::Cause> consumer_faults(const Consumer& wanted, const Consumer* before,
                                         const ConsumerContext& context) {
    return Judge(wanted, before, context).run();
}

}  // namespace berth::model
