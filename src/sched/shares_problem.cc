// The half of Shares that states what is to be solved.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/saturating.h"
#include "model/resource_names.h"
#include "sched/shares.h"
#include "share/leaves.h"
#include "share/portions.h"

namespace berth::sched {
namespace {

using ledger::PodIndex;
using ledger::Space;
using ledger::SpaceGroup;
using ledger::Spaces;
using model::ResourceId;

template <class Test>
bool names(const Spaces& spaces, Test test) {
    bool any = false;
    const auto look = [&](ResourceId id, int64_t) { any = any || test(model::resource_name(id)); };
    for (const auto& [name, consumer] : spaces.consumers()) {
        for (const auto* amounts :
             {&consumer->hard.amounts, &consumer->hard.percents, &consumer->reserved.amounts,
              &consumer->reserved.percents, &consumer->request, &consumer->lending_limit, &consumer->borrowing_limit})
            amounts->for_each(look);
    }
    return any;
}

// By names, since the numbers of resources differ from run to run.
bool smaller(const Resources& a, const Resources& b) {
    std::string_view first;
    int order = 0;
    const auto look = [&](ResourceId id, int64_t) {
        if (a.get(id) == b.get(id)) return;
        const auto name = model::resource_name(id);
        if (order != 0 && first <= name) return;
        first = name;
        order = a.get(id) < b.get(id) ? -1 : 1;
    };
    a.for_each(look);
    b.for_each(look);
    return order < 0;
}

// Those that are kept first come first: the most important ones.
std::vector<const SpaceGroup*> in_order(const Space& space) {
    std::vector<const SpaceGroup*> groups;
    for (const auto& group : space.groups) groups.push_back(&group);
    std::sort(groups.begin(), groups.end(), [](const auto* a, const auto* b) {
        return a->priority != b->priority ? a->priority > b->priority : smaller(a->size, b->size);
    });
    return groups;
}

Resources without_limits(const Resources& size) {
    Resources out;
    size.for_each([&](ResourceId id, int64_t amount) {
        if (!model::is_limit(model::resource_name(id))) out.set(id, amount);
    });
    return out;
}

// How many pods of a size hard still allows.
int64_t room_for(const Resources& hard, const Resources& demand, const Resources& size, int64_t pods) {
    int64_t most = INT64_MAX;
    size.for_each([&](ResourceId id, int64_t amount) {
        if (amount <= 0 || !hard.has(id)) return;
        most = std::min(most, std::max<int64_t>(0, base::saturating_subtract(hard.get(id), demand.get(id)) / amount));
    });
    static const std::array kCounts{model::kPods, *model::intern_resource("count/pods")};
    for (const ResourceId id : kCounts) {
        if (hard.has(id)) most = std::min(most, std::max<int64_t>(0, hard.get(id) - pods));
    }
    return most;
}

void add_times(Resources& sum, const Resources& size, int64_t count) {
    size.for_each([&](ResourceId id, int64_t amount) {
        int64_t product = 0;
        sum.add(id, __builtin_mul_overflow(amount, count, &product) ? INT64_MAX : product);
    });
}

}  // namespace

bool Shares::endless(ResourceId id) {
    const auto name = model::resource_name(id);
    return model::is_limit(name) || model::is_storage(name);
}

// ---- what there is

Resources Shares::capacity(const View& ledger, base::Time wall) {
    Resources total;
    next_lost_.reset();
    cordoned_ = false;
    std::vector<Row> rows;
    for (Row row = 0; row < ledger.rows(); ++row) {
        if (!ledger.alive(row)) continue;
        const model::Node& node = ledger.node(row);
        if (node.not_ready) {
            const base::Time lost = *node.not_ready + share::kLostAfter;
            if (lost <= wall) continue;
            next_lost_ = std::min(next_lost_.value_or(lost), lost);
        }
        if (!node.unschedulable) {
            rows.push_back(row);
            continue;
        }
        cordoned_ = true;
        Resources used;
        for (const PodIndex pod : ledger.at(row).pods) used.add(ledger.pod(pod).spec->requests);
        for (uint16_t i = 0; i < ledger.columns(); ++i) {
            const auto* column = ledger.column({i});
            if (column != nullptr && column->allocatable[row] > 0)
                total.add({i}, std::max<int64_t>(0, std::min(column->allocatable[row], used.get({i}))));
        }
    }
    for (uint16_t i = 0; i < ledger.columns(); ++i) {
        const auto* column = ledger.column({i});
        if (column == nullptr) continue;
        int64_t sum = total.get({i});
        for (const Row row : rows) sum = base::saturating_add(sum, std::max<int64_t>(0, column->allocatable[row]));
        total.set({i}, sum);
    }
    total.erase(model::kPods);
    ledger.spaces()->held_by_many().for_each([&](ResourceId id, int64_t amount) {
        if (total.has(id)) total.set(id, std::max<int64_t>(0, total.get(id) - amount));
    });
    if (settings_.limits_factor) share::add_limits(total, *settings_.limits_factor);
    settings_.storage.for_each([&](ResourceId id, int64_t amount) { total.set(id, amount); });
    return total;
}

// ---- the rules

void Shares::read_rules(const View& ledger) {
    const Spaces& spaces = *ledger.spaces();
    counts_limits_ = settings_.limits_factor.has_value() || names(spaces, model::is_limit);
    counts_storage_ = !settings_.storage.empty() || names(spaces, model::is_storage);
    std::vector<const model::Consumer*> consumers;
    for (const auto& [name, consumer] : spaces.consumers()) consumers.push_back(consumer.get());
    percents_ = std::any_of(consumers.begin(), consumers.end(), [](const auto* consumer) {
        return !consumer->reserved.percents.empty() || !consumer->hard.percents.empty();
    });
    plain_ = settings_.policy == share::Policy::Surplus && spaces.quotas().empty() && !counts_limits_ &&
             !counts_storage_ && std::all_of(consumers.begin(), consumers.end(), [](const auto* consumer) {
                 return consumer->weight > 0 && consumer->hard.empty() && consumer->lending_limit.empty() &&
                        consumer->borrowing_limit.empty() && consumer->request.empty();
             });
    const share::Portions portions(consumers, capacity_);
    limits_.assign(spaces.size(), {});
    for (SpaceId id = 0; id < spaces.size(); ++id) {
        Limits& limits = limits_[id];
        const std::string& name = spaces.at(id).name;
        limits.infinite = settings_.infinite.contains(name);
        const auto* consumer = portions.find(name);
        if (consumer == nullptr) continue;
        limits.reserved = portions.reserved_of(name);
        limits.hard = portions.hard_of(name);
    }
    for (const auto& [name, quota] : spaces.quotas()) {
        if (!quota->scoped) share::heed(*quota, limits_[spaces.find(quota->meta.ns)].hard);
    }
}

void Shares::count_claims(const View& ledger) {
    claims_seen_ = ledger.spaces()->claims_epoch();
    storage_.assign(ledger.spaces()->size(), {});
    if (!counts_storage_) return;
    for (const auto& claim : ledger.volumes().claims().sorted()) {
        const SpaceId id = ledger.spaces()->find(claim->meta.ns);
        if (!claim->request || id == ledger::kNone) continue;
        Resources& sum = claim->volume.empty() ? storage_[id].second : storage_[id].first;
        sum.add(*model::intern_resource(model::kStorageKey), claim->request->value());
        if (claim->class_name().empty()) continue;
        const auto key =
            model::intern_asked_resource(fmt::format("{}{}", claim->class_name(), model::kClassStorageSuffix));
        if (key) sum.add(*key, claim->request->value());
    }
}

// ---- the problem

Resources Shares::size_of(const model::PodSpec& spec) const {
    Resources size = Spaces::size_of(spec);
    return counts_limits_ || spec.limits.empty() ? size : without_limits(size);
}

Shares::Wishes Shares::wishes_of(const View& ledger, SpaceId id) const {
    const Space& space = ledger.spaces()->at(id);
    const Resources& hard = limits_[id].hard;
    const auto counted = [&](const Resources& size) { return counts_limits_ ? size : without_limits(size); };
    share::Leaves leaves;
    leaves.add(space.held, 1, true);
    const auto groups = in_order(space);
    for (const auto* group : groups) leaves.add(counted(group->size), group->placed, true);
    Resources demand = counted(space.used);
    demand.add(space.held);
    int64_t pods = space.pods;
    for (const auto* group : groups) {
        const Resources size = counted(group->size);
        const int64_t count = std::min(group->waiting, room_for(hard, demand, size, pods));
        leaves.add(size, count, false);
        add_times(demand, size, count);
        pods += count;
    }
    leaves.add(storage_[id].first, 1, true);
    leaves.add(storage_[id].second, 1, false);
    demand.add(storage_[id].first);
    demand.add(storage_[id].second);
    Resources beyond;
    const auto consumer = ledger.spaces()->consumers().find(space.name);
    if (consumer != ledger.spaces()->consumers().end()) {
        consumer->second->request.for_each([&](ResourceId one, int64_t amount) {
            if (amount > demand.get(one)) beyond.set(one, amount - demand.get(one));
        });
    }
    leaves.ask(beyond);
    return leaves.all();
}

Resources Shares::demand(const View& ledger, SpaceId id) const {
    const Space& space = ledger.spaces()->at(id);
    Resources out = taken(ledger, id);
    for (const auto& group : space.groups) add_times(out, group.size, group.waiting);
    return out;
}

// A resource that is asked for and that no node has is not endless.
bool Shares::meet(const share::Leaf& leaf) {
    bool any = false;
    leaf.demand.for_each([&](ResourceId id, int64_t) {
        if (capacity_.has(id) || endless(id)) return;
        capacity_.set(id, 0);
        any = true;
    });
    return any;
}

void Shares::build(const View& ledger) {
    const Spaces& spaces = *ledger.spaces();
    share::Problem problem;
    problem.policy = settings_.policy;
    problem.spread = settings_.spread;
    sets_.assign(spaces.size(), {});
    deserved_.assign(spaces.size(), {0, {}});
    for (SpaceId id = 0; id < spaces.size(); ++id) {
        share::Consumer out;
        out.name = spaces.at(id).name;
        out.infinite = limits_[id].infinite;
        out.reserved = limits_[id].reserved;
        limits_[id].hard.for_each([&](ResourceId key, int64_t amount) {
            if (!model::is_count(model::resource_name(key))) out.hard.set(key, amount);
        });
        if (const auto found = spaces.consumers().find(out.name); found != spaces.consumers().end()) {
            const model::Consumer& consumer = *found->second;
            out.parent = consumer.parent;
            out.weight = consumer.weight;
            out.lending_limit = consumer.lending_limit;
            out.borrowing_limit = consumer.borrowing_limit;
        }
        for (const auto& [set, leaf] : wishes_of(ledger, id)) {
            meet(leaf);
            sets_[id].push_back(set);
            out.leaves.push_back(leaf);
        }
        problem.consumers.push_back(std::move(out));
    }
    problem.capacity = capacity_;
    solver_ = std::make_unique<share::Solver>(std::move(problem));
}

void Shares::update(const View& ledger, SpaceId id) {
    Wishes wishes = wishes_of(ledger, id);
    Sets& sets = sets_[id];
    const auto& leaves = solver_->problem().consumers[id].leaves;
    for (size_t i = 0; i < sets.size(); ++i) {
        if (!wishes.contains(sets[i]) && !leaves[i].demand.empty()) solver_->change(id, i, {});
    }
    for (auto& [set, leaf] : wishes) {
        const auto known = std::find(sets.begin(), sets.end(), set);
        const auto place = static_cast<size_t>(known - sets.begin());
        if (known == sets.end()) sets.push_back(set);
        if (meet(leaf)) solver_->set_capacity(capacity_);
        solver_->change(id, place, std::move(leaf));
    }
}

}  // namespace berth::sched
