#include "ledger/pod_groups.h"

#include <absl/hash/hash.h>

#include <algorithm>

namespace berth::ledger {
namespace {

constexpr size_t kMaxIdle = 256;

size_t hash_of(const model::PodSpec& spec) {
    return absl::HashOf(spec.ns, spec.labels, spec.affinity.size(), spec.anti_affinity.size(),
                        spec.preferred_affinity.size(), spec.preferred_anti_affinity.size());
}

bool same_group(const model::PodSpec& a, const model::PodSpec& b) {
    return &a == &b ||
           (a.ns == b.ns && a.labels == b.labels && a.affinity == b.affinity && a.anti_affinity == b.anti_affinity &&
            a.preferred_affinity == b.preferred_affinity && a.preferred_anti_affinity == b.preferred_anti_affinity);
}

}  // namespace

GroupId PodGroups::find(const model::PodSpec& spec) const {
    const auto found = by_hash_.find(hash_of(spec));
    if (found == by_hash_.end()) return kNone;
    for (const GroupId id : found->second) {
        if (same_group(*groups_[id].spec, spec)) return id;
    }
    return kNone;
}

GroupId PodGroups::make(std::shared_ptr<const model::PodSpec> spec) {
    GroupId id = 0;
    if (free_.empty()) {
        id = static_cast<GroupId>(groups_.size());
        groups_.emplace_back();
    } else {
        id = free_.back();
        free_.pop_back();
    }
    PodGroup& group = groups_[id];
    group.spec = std::move(spec);
    by_hash_[hash_of(*group.spec)].push_back(id);
    auto& neighbours = by_namespace_[group.spec->ns];
    group.place = neighbours.size();
    neighbours.push_back(id);
    return id;
}

void PodGroups::count(GroupId id, Row row, bool terminating, int delta, size_t rows) {
    PodGroup& group = groups_[id];
    (terminating ? group.terminating : group.living).add(row, delta, rows);
    if (group.idle || !group.empty()) return;
    group.idle = true;
    idle_.push_back(id);
}

std::vector<GroupId> PodGroups::stale() {
    std::vector<GroupId> ids;
    while (idle_.size() > kMaxIdle) {
        const GroupId id = idle_.front();
        idle_.pop_front();
        groups_[id].idle = false;
        if (groups_[id].empty()) ids.push_back(id);
    }
    return ids;
}

void PodGroups::free(GroupId id) {
    PodGroup& group = groups_[id];
    const auto hashed = by_hash_.find(hash_of(*group.spec));
    std::erase(hashed->second, id);
    if (hashed->second.empty()) by_hash_.erase(hashed);
    const auto named = by_namespace_.find(group.spec->ns);
    auto& neighbours = named->second;
    groups_[neighbours.back()].place = group.place;
    neighbours[group.place] = neighbours.back();
    neighbours.pop_back();
    if (neighbours.empty()) by_namespace_.erase(named);
    group = PodGroup();
    free_.push_back(id);
}

}  // namespace berth::ledger
