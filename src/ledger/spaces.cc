#include "ledger/spaces.h"

#include <absl/hash/hash.h>

#include <algorithm>

#include "base/saturating.h"
#include "model/preemption_hold.h"
#include "model/reservation_rules.h"

namespace berth::ledger {
namespace {

bool at_the_end(const Resources& sum) {
    bool any = false;
    sum.for_each([&](ResourceId, int64_t amount) { any = any || amount == INT64_MAX; });
    return any;
}

Resources times(const Resources& size, int64_t count) {
    Resources out;
    size.for_each([&](ResourceId id, int64_t amount) {
        int64_t product = 0;
        out.set(id, __builtin_mul_overflow(amount, count, &product) ? INT64_MAX : product);
    });
    return out;
}

}  // namespace

Resources Spaces::size_of(const model::PodSpec& spec) {
    Resources size = spec.requests;
    size.erase(model::kPods);
    if (!spec.limits.empty()) size.add(spec.limits);
    return size;
}

SpaceId Spaces::find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? kNone : found->second;
}

SpaceId Spaces::space(std::string_view name) {
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return found->second;
    const auto id = static_cast<SpaceId>(spaces_.size());
    by_name_.emplace(name, id);
    spaces_.emplace_back().name = name;
    groups_.emplace_back();
    touch(id);
    return id;
}

Spaces::Known& Spaces::slot_of(const model::PodSpec& spec) {
    return known_[absl::HashOf(&spec) % known_.size()];
}

// Specs are shared by pods that are alike, so most are found by where they stand.
Spaces::Place Spaces::find_place(const model::PodSpec& spec) {
    if (const Known& known = slot_of(spec); known.spec.get() == &spec) return known.place;
    const SpaceId id = space(spec.ns);
    auto& groups = spaces_[id].groups;
    GroupKey key(size_of(spec), spec.priority);
    const auto [found, fresh] = groups_[id].try_emplace(std::move(key), static_cast<uint32_t>(groups.size()));
    if (fresh) groups.push_back({found->first.first, spec.priority, 0, 0});
    return {id, found->second};
}

void Spaces::remember(const std::shared_ptr<const model::PodSpec>& spec) {
    if (last_.spec == spec) return;
    Known& known = slot_of(*spec);
    if (known.spec != spec) known = {spec, place_of(*spec)};
    last_ = known;
}

// ---- sums

const Resources& Spaces::batch_size() const {
    static const Resources kNothing;
    return batch_.place.space == kNone ? kNothing : at(batch_.place).size;
}

void Spaces::begin_batch(const Place& place) {
    settle();
    batch_.place = place;
    batch_asked_ = 0;
    ++batches_;
}

void Spaces::add_batch() const {
    const Batch batch = batch_;
    batch_.placed = batch_.asked = 0;
    Space& space = spaces_[batch.place.space];
    const Resources& size = at(batch.place).size;
    if (batch.placed > 0) {
        space.used.add(times(size, batch.placed));
        space.saturated = space.saturated || at_the_end(space.used);
    } else if (batch.placed < 0) {
        space.used.subtract(times(size, -batch.placed));
        recount(batch.place.space);
    }
    if (batch.asked != 0) ask(times(size, std::abs(batch.asked)), batch.asked > 0 ? 1 : -1);
}

std::vector<SpaceId> Spaces::take_changed() {
    settle();
    for (const SpaceId id : changed_) spaces_[id].changed = false;
    return std::exchange(changed_, {});
}

// A sum that met the end of int64 is not what it was when something is taken off it.
void Spaces::recount(SpaceId id) const {
    Space& space = spaces_[id];
    if (!space.saturated) return;
    space.used.clear();
    space.releasing.clear();
    for (const auto& group : space.groups) {
        space.used.add(times(group.size, group.placed));
        space.releasing.add(times(group.size, group.leaving));
    }
    space.saturated = at_the_end(space.used);
}

void Spaces::ask_for_held(const Resources& size, int sign) {
    settle();
    ask(size, sign);
    ++batches_;
}

void Spaces::ask(const Resources& size, int sign) const {
    if (sign > 0) {
        asked_.add(size);
        asked_saturated_ = asked_saturated_ || at_the_end(asked_);
        return;
    }
    asked_.subtract(size);
    if (!asked_saturated_) return;
    asked_.clear();
    for (const Space& space : spaces_) {
        asked_.add(space.held);
        for (const auto& group : space.groups)
            asked_.add(times(group.size, base::saturating_add(group.placed, group.waiting)));
    }
    asked_saturated_ = at_the_end(asked_);
}

void Spaces::change_waiting(const model::PodSpec& spec, int64_t by) {
    const Place place = place_of(spec);
    at(place).waiting += by;
    note_if_empty(at(place));
    count(place, 0, by);
    touch(place.space);
}

// ---- what nobody has any more

void Spaces::forget_places() {
    known_ = {};
    last_ = {};
    begin_batch({});
}

void Spaces::drop_empty_groups(SpaceId id) {
    auto& groups = spaces_[id].groups;
    const auto empty = [](const SpaceGroup& group) { return group.placed == 0 && group.waiting == 0; };
    if (static_cast<size_t>(std::count_if(groups.begin(), groups.end(), empty)) * 2 < groups.size()) return;
    std::erase_if(groups, empty);
    groups.shrink_to_fit();
    groups_[id] = {};
    for (uint32_t i = 0; i < groups.size(); ++i) groups_[id].emplace(GroupKey(groups[i].size, groups[i].priority), i);
}

std::vector<bool> Spaces::spaces_in_use(const absl::flat_hash_set<SpaceId>& needed) const {
    std::vector<bool> used(spaces_.size());
    for (SpaceId id = 0; id < spaces_.size(); ++id) used[id] = !spaces_[id].groups.empty() || needed.contains(id);
    for (const auto& [name, consumer] : consumers_) {
        used[find(name)] = true;
        if (!consumer->parent.empty()) used[find(consumer->parent)] = true;
    }
    for (const auto& [name, quota] : quotas_) used[find(quota->meta.ns)] = true;
    for (const auto& [index, hold] : holds_) {
        if (hold.first) used[*hold.first] = true;
    }
    return used;
}

void Spaces::renumber(const std::vector<SpaceId>& numbers) {
    const auto move_up = [&](auto& rows) {
        for (SpaceId id = 0; id < numbers.size(); ++id) {
            if (numbers[id] != kNone && numbers[id] != id) rows[numbers[id]] = std::move(rows[id]);
        }
        rows.resize(by_name_.size());
        rows.shrink_to_fit();
    };
    absl::erase_if(by_name_, [&](const auto& entry) { return numbers[entry.second] == kNone; });
    for (auto& [name, id] : by_name_) id = numbers[id];
    move_up(spaces_);
    move_up(groups_);
    for (auto& [index, hold] : holds_) {
        if (hold.first) hold.first = numbers[*hold.first];
    }
    for (SpaceId& id : changed_) id = numbers[id];
    std::erase(changed_, kNone);
}

std::vector<SpaceId> Spaces::tidy(const absl::flat_hash_set<SpaceId>& needed) {
    forget_places();
    kept_ = kLeastGone;
    gone_ = 0;
    for (SpaceId id = 0; id < spaces_.size(); ++id) {
        drop_empty_groups(id);
        kept_ += spaces_[id].groups.size();
    }
    const std::vector<bool> used = spaces_in_use(needed);
    const auto left = static_cast<size_t>(std::count(used.begin(), used.end(), true));
    std::vector<SpaceId> numbers;
    if (left * 2 <= used.size()) {
        SpaceId next = 0;
        for (const bool stays : used) numbers.push_back(stays ? next++ : kNone);
        renumber(numbers);
    }
    kept_ += spaces_.size();
    return numbers;
}

// ---- who waits

const Spaces::Waiting* Spaces::Line::find(const Uid& uid) const {
    if (last_ && last_->uid == uid) return &*last_;
    if (others_.empty()) return nullptr;
    const auto found = others_.find(uid);
    return found == others_.end() ? nullptr : &*found;
}

const Spaces::Waiting& Spaces::Line::add(Uid uid) {
    if (const Waiting* known = find(uid)) return *known;
    if (last_) others_.insert(std::move(*last_));
    return last_.emplace(std::move(uid));
}

void Spaces::Line::erase(const Waiting* pod) {
    if (last_ && pod == &*last_) return last_.reset();
    others_.erase(others_.find(pod->uid));
}

void Spaces::await(std::string_view uid, const std::shared_ptr<const model::PodSpec>& spec, bool counts) {
    const Waiting& pod = waiting_.add(Uid(uid));
    if (pod.spec && pod.counts == counts && *pod.spec == *spec) return;
    if (pod.spec && pod.counts) change_waiting(*pod.spec, -1);
    pod.spec = spec;
    pod.counts = counts;
    if (counts) {
        remember(spec);
        change_waiting(*spec, 1);
    }
    ++demand_epoch_;
}

bool Spaces::set_counts(std::string_view uid, bool counts) {
    const Waiting* found = waiting_.find(Uid(uid));
    if (found == nullptr || found->counts == counts) return false;
    found->counts = counts;
    change_waiting(*found->spec, counts ? 1 : -1);
    ++demand_epoch_;
    return true;
}

std::optional<bool> Spaces::counted(std::string_view uid) const {
    const Waiting* found = waiting_.find(Uid(uid));
    if (found == nullptr) return std::nullopt;
    return found->counts;
}

void Spaces::forget(std::string_view uid) {
    if (waiting_.empty()) return;
    const Waiting* found = waiting_.find(Uid(uid));
    if (found == nullptr) return;
    if (found->counts) {
        change_waiting(*found->spec, -1);
        ++demand_epoch_;
    }
    waiting_.erase(found);
}

void Spaces::await_all(const Spaces& other) {
    other.waiting_.each([&](const Waiting& pod) {
        const Waiting& here = waiting_.add(Uid(pod.uid.text()));
        here.spec = pod.spec;
        here.counts = pod.counts;
        if (pod.counts) change_waiting(*pod.spec, 1);
    });
}

// ---- rules

void Spaces::put(std::shared_ptr<const model::Consumer> consumer) {
    space(consumer->meta.name);
    if (!consumer->parent.empty()) space(consumer->parent);
    ++rules_epoch_;
    std::string name = consumer->meta.name;
    consumers_.insert_or_assign(std::move(name), std::move(consumer));
}

void Spaces::put(std::shared_ptr<const model::ResourceQuota> quota) {
    space(quota->meta.ns);
    ++rules_epoch_;
    std::string name = quota->meta.full_name();
    quotas_.insert_or_assign(std::move(name), std::move(quota));
}

void Spaces::remove_consumer(std::string_view name) {
    if (consumers_.erase(name) == 0) return;
    ++rules_epoch_;
    ++gone_;
}

void Spaces::remove_quota(std::string_view full_name) {
    if (quotas_.erase(full_name) == 0) return;
    ++rules_epoch_;
    ++gone_;
}

// ---- the ledger's own

// Assumed after it waited: what it asks for is what it did before, so nothing has to be shared out anew.
Waits Spaces::place(const Uid& uid, const model::PodSpec& spec, bool terminating, bool assumed) {
    Waits waited = Waits::No;
    bool asked = false;  // for the same, so that the sum of both stays
    if (const Waiting* found = waiting_.find(uid)) {
        waited = found->counts ? Waits::Counted : Waits::Uncounted;
        asked = found->counts && found->spec.get() == &spec;
        if (found->counts && !asked) change_waiting(*found->spec, -1);
        waiting_.erase(found);
    }
    if (waited != Waits::Counted || !assumed) ++demand_epoch_;
    const Place place = place_of(spec);
    const SpaceId id = place.space;
    SpaceGroup& alike = at(place);
    ++alike.placed;
    if (asked) --alike.waiting;
    count(place, 1, asked ? 0 : 1);
    ++spaces_[id].pods;
    if (terminating) {
        ++alike.leaving;
        spaces_[id].releasing.add(alike.size);
    }
    touch(id);
    return waited;
}

void Spaces::displace(Uid uid, const std::shared_ptr<const model::PodSpec>& spec, bool terminating, Waits next) {
    const Place place = place_of(*spec);
    const SpaceId id = place.space;
    SpaceGroup& alike = at(place);
    --alike.placed;
    note_if_empty(alike);
    count(place, -1, -1);
    --spaces_[id].pods;
    if (terminating) {
        --alike.leaving;
        release_part(id, alike.size);
    }
    touch(id);
    ++demand_epoch_;
    if (next == Waits::No) return;
    const Waiting& pod = waiting_.add(std::move(uid));
    if (pod.spec) return;
    pod.spec = spec;
    pod.counts = next == Waits::Counted;
    if (pod.counts) change_waiting(*spec, 1);
}

// Of what is about to go.
void Spaces::release_part(SpaceId id, const Resources& size) {
    spaces_[id].releasing.subtract(size);
    settle();
    recount(id);
}

void Spaces::set_terminating(const model::PodSpec& spec, bool terminating) {
    const Place place = place_of(spec);
    const SpaceId id = place.space;
    SpaceGroup& alike = at(place);
    alike.leaving += terminating ? 1 : -1;
    if (terminating) {
        spaces_[id].releasing.add(alike.size);
    } else {
        release_part(id, alike.size);
    }
    ++sums_epoch_;
}

// Room that waits for a preemptor is nobody's: the pod that it is for asks for it itself.
void Spaces::hold(ReservationIndex index, const model::Reservation& object, Resources open) {
    if (!model::preemption_hold_owner(object).empty()) return;
    const std::string owners = model::namespace_of_owners(object);
    std::optional<SpaceId> id;
    if (!owners.empty()) id = space(owners);
    const auto known = holds_.find(index);
    if (known != holds_.end() && known->second.first == id && known->second.second == open) return;
    release(index);
    if (open.empty()) return;
    (id ? spaces_[*id].held : held_by_many_).add(open);
    if (id) ask_for_held(open, 1);
    if (id) touch(*id);
    if (!id) ++nodes_epoch_;
    ++demand_epoch_;
    holds_.emplace(index, std::pair(id, std::move(open)));
}

void Spaces::release(ReservationIndex index) {
    const auto found = holds_.find(index);
    if (found == holds_.end()) return;
    const auto& [id, open] = found->second;
    (id ? spaces_[*id].held : held_by_many_).subtract(open);
    if (id) ask_for_held(open, -1);
    if (id) touch(*id);
    if (!id) ++nodes_epoch_;
    ++demand_epoch_;
    ++gone_;
    holds_.erase(found);
}

}  // namespace berth::ledger
