#include "ledger/owner_index.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace berth::ledger {
namespace {

bool demands_values(const model::Requirement& requirement) {
    using Op = model::Requirement::Op;
    return requirement.op == Op::Equals || requirement.op == Op::DoubleEquals || requirement.op == Op::In;
}

}  // namespace

uint64_t OwnerIndex::key_of(By by, std::string_view text, std::string_view more) {
    const std::hash<std::string_view> hash;
    const uint64_t mixed = (hash(text) ^ (static_cast<uint64_t>(by) * 0x9e3779b97f4a7c15ULL)) * 0xff51afd7ed558ccdULL;
    const uint64_t key = more.empty() ? mixed : (mixed ^ (mixed >> 29)) + hash(more);
    return key == kUnfiled ? 1 : key;
}

// Of several labels the one that fewest reservations are filed under so far.
OwnerIndex::Files OwnerIndex::label_keys(const model::Selector& selector) const {
    Files best;
    size_t fewest = SIZE_MAX;
    for (const auto& requirement : selector.requirements()) {
        if (!demands_values(requirement)) continue;
        Files keys;
        size_t filed = 0;
        for (const auto& value : requirement.values) {
            keys.push_back({key_of(By::Label, requirement.key, value), By::Label});
            const auto found = filed_.find(keys.back().key);
            if (found != filed_.end()) filed += found->second.size();
        }
        if (filed >= fewest) continue;
        fewest = filed;
        best = std::move(keys);
    }
    return best;
}

OwnerIndex::Files OwnerIndex::keys_of(const model::ReservationOwner& owner) const {
    const auto by = [](By what, const std::string& text) { return Files{Filed{key_of(what, text), what}}; };
    if (const auto& object = owner.object) {
        if (!object->uid.empty()) return by(By::ObjectUid, object->uid);
        if (!object->name.empty()) return by(By::ObjectName, object->name);
    }
    if (const auto& controller = owner.controller) {
        if (!controller->uid.empty()) return by(By::ControllerUid, controller->uid);
        if (!controller->name.empty()) return by(By::ControllerName, controller->name);
    }
    return owner.labels ? label_keys(*owner.labels) : Files();
}

void OwnerIndex::add(Index index, const std::vector<model::ReservationOwner>& owners) {
    Files keys;
    bool unfiled = false;
    for (const auto& owner : owners) {
        const Files more = keys_of(owner);
        unfiled = unfiled || more.empty();
        keys.insert(keys.end(), more.begin(), more.end());
    }
    if (unfiled) keys = {Filed{}};
    std::sort(keys.begin(), keys.end());
    const auto same = [](const Filed& a, const Filed& b) { return a.key == b.key; };
    keys.erase(std::unique(keys.begin(), keys.end(), same), keys.end());
    for (Filed& filed : keys) {
        std::vector<Index>& all = bucket(filed.key);
        filed.place = static_cast<uint32_t>(all.size());
        all.push_back(index);
        ++filed_by_[static_cast<size_t>(filed.by)];
    }
    CHECK(keys_.emplace(index, std::move(keys)).second);
}

void OwnerIndex::remove(Index index) {
    const auto found = keys_.find(index);
    CHECK(found != keys_.end());
    for (const auto& [key, by, place] : found->second) {
        --filed_by_[static_cast<size_t>(by)];
        std::vector<Index>& all = bucket(key);
        const Index last = all.back();
        all[place] = last;
        all.pop_back();
        if (last != index) {
            auto& others = keys_.find(last)->second;
            const auto same = [key = key](const Filed& filed) { return filed.key == key; };
            std::find_if(others.begin(), others.end(), same)->place = place;
        }
        if (all.empty()) filed_.erase(key);
    }
    keys_.erase(found);
}

bool OwnerIndex::any(const model::PodIdentity& pod) const {
    bool found = !unfiled_.empty();
    if (found || empty()) return found;
    each_key(pod, [&](uint64_t key) { found = found || filed_.contains(key); });
    return found;
}

}  // namespace berth::ledger
