#include "ledger/terms.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>

namespace berth::ledger {
namespace {

// Keys and node sets that nobody counts by any more stay until there are this many, and twice as many as were needed.
constexpr size_t kTopologySlack = 64;

}  // namespace

void Terms::put(model::Namespace space) {
    const auto [known, fresh] = namespaces_.try_emplace(space.name);
    if (!fresh && known->second == space.labels) return;
    known->second = std::move(space.labels);
    tallies_.rematch(space.name);
}

void Terms::remove_namespace(std::string_view name) {
    if (namespaces_.erase(name) != 0) tallies_.rematch(name);
}

void Terms::count(GroupId id, Row row, bool terminating, int delta) {
    groups_.count(id, row, terminating, delta, topology_.rows());
    const PodGroup& group = groups_.at(id);
    if (!group.matchers.empty()) tallies_.count(group, row, terminating, delta);
    if (!group.terms.empty()) held_.count(group.terms, row, delta);
}

GroupId Terms::group_of(const std::shared_ptr<const model::PodSpec>& spec) {
    for (const Recent& recent : recent_) {
        if (recent.spec == spec) return recent.group;
    }
    GroupId id = groups_.find(*spec);
    if (id == kNone) {
        free_stale_groups();
        id = groups_.make(spec);
        PodGroup& group = groups_.at(id);
        group.terms = held_.hold(*spec, topology_);
        tallies_.join(group);
    }
    std::swap(recent_.front(), recent_.back());
    recent_.front() = {spec, id};
    return id;
}

GroupId Terms::add(const std::shared_ptr<const model::PodSpec>& spec, Row row, bool terminating) {
    const GroupId id = group_of(spec);
    count(id, row, terminating, 1);
    return id;
}

void Terms::remove(GroupId group, Row row, bool terminating) {
    count(group, row, terminating, -1);
}

void Terms::free_stale_groups() {
    for (const GroupId id : groups_.stale()) {
        held_.let_go(groups_.at(id).terms);
        groups_.free(id);
        for (Recent& recent : recent_) {
            if (recent.group == id) recent = {};
        }
    }
}

void Terms::show(ReservationIndex index, const std::shared_ptr<const model::PodSpec>& spec, Row row) {
    if (index >= shown_.size()) shown_.resize(index + 1);
    if (shown_[index].group == kNone) shown_[index] = {add(spec, row, false), row};
}

void Terms::hide(ReservationIndex index) {
    if (!find_shown(index)) return;
    remove(shown_[index].group, shown_[index].row, false);
    shown_[index] = {};
}

void Terms::trim() const {
    const size_t before = tallies_.size();
    tallies_.trim();
    if (tallies_.size() == before && topology_.size() <= kTopologySlack + 2 * needed_) return;
    absl::flat_hash_set<const Scope*> scopes;
    tallies_.each([&](const Tally& tally) { scopes.insert(tally.scope); });
    topology_.collect([&](const Scope* scope) { return scopes.contains(scope); },
                      [used = held_.keys()](const TopologyKey* key) { return used.contains(key); });
    needed_ = topology_.size();
}

Tally Terms::without(const Tally& tally, std::span<const ReservationIndex> left_out) const {
    Tally rest = tally;
    for (const ReservationIndex index : left_out) {
        const Shown* shown = find_shown(index);
        if (!shown) continue;
        const auto& matchers = groups_.at(shown->group).matchers;
        if (std::binary_search(matchers.begin(), matchers.end(), tally.matcher)) rest.add(shown->row, -1);
    }
    return rest;
}

}  // namespace berth::ledger
