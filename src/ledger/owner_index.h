#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "model/reservation_rules.h"

namespace berth::ledger {

// Finds the reservations that a pod may own without walking all of them. Each owner clause is filed under one thing it
// demands (a uid, a name, a label's value); a clause that demands nothing of the kind is tried for every pod.
class OwnerIndex {
public:
    using Index = uint32_t;

    void add(Index index, const std::vector<model::ReservationOwner>& owners);
    void remove(Index index);
    bool empty() const { return keys_.empty(); }

    // Whether there is one that may match.
    bool any(const model::PodIdentity& pod) const;
    // Whether any is for one pod, by its name or uid, as far as the index knows.
    bool names_pods() const { return !unfiled_.empty() || has(By::ObjectUid) || has(By::ObjectName); }
    // Calls f(index) for every reservation that may match; one with several clauses may come more than once.
    template <class F>
    void candidates(const model::PodIdentity& pod, F f) const {
        if (empty()) return;
        for (const Index index : unfiled_) f(index);
        each_key(pod, [&](uint64_t key) {
            const auto found = filed_.find(key);
            if (found == filed_.end()) return;
            for (const Index index : found->second) f(index);
        });
    }

private:
    // A key is a hash: what collides is only tried in vain.
    enum class By : uint8_t { Nothing, ObjectUid, ObjectName, ControllerUid, ControllerName, Label };
    struct Filed {
        uint64_t key = kUnfiled;
        By by = By::Nothing;
        uint32_t place = 0;  // in its drawer
        auto operator<=>(const Filed&) const = default;
    };
    using Files = absl::InlinedVector<Filed, 1>;
    static uint64_t key_of(By by, std::string_view text, std::string_view more = {});
    Files keys_of(const model::ReservationOwner& owner) const;
    Files label_keys(const model::Selector& selector) const;
    std::vector<Index>& bucket(uint64_t key) { return key == kUnfiled ? unfiled_ : filed_[key]; }
    bool has(By by) const { return filed_by_[static_cast<size_t>(by)] > 0; }
    // Only what some reservation is filed by is worth a look.
    template <class F>
    void each_key(const model::PodIdentity& pod, F f) const {
        if (has(By::ObjectUid)) f(key_of(By::ObjectUid, pod.uid));
        if (has(By::ObjectName)) f(key_of(By::ObjectName, pod.name));
        for (const auto& owner : *pod.owners) {
            if (has(By::ControllerUid)) f(key_of(By::ControllerUid, owner.uid));
            if (has(By::ControllerName)) f(key_of(By::ControllerName, owner.name));
        }
        if (!has(By::Label)) return;
        for (const auto& [key, value] : *pod.labels) f(key_of(By::Label, key, value));
    }

    static constexpr uint64_t kUnfiled = 0;
    std::array<size_t, 6> filed_by_{};
    absl::flat_hash_map<uint64_t, std::vector<Index>> filed_;
    std::vector<Index> unfiled_;
    absl::flat_hash_map<Index, Files> keys_;  // where each is filed
};

}  // namespace berth::ledger
