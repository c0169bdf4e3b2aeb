#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "model/reservation.h"

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
    enum class By : uint64_t { ObjectUid = 1, ObjectName, ControllerUid, ControllerName, Label };
    static uint64_t key_of(By by, std::string_view text, std::string_view more = {});
    std::vector<uint64_t> keys_of(const model::ReservationOwner& owner) const;
    std::vector<uint64_t> label_keys(const model::Selector& selector) const;
    template <class F>
    static void each_key(const model::PodIdentity& pod, F f) {
        f(key_of(By::ObjectUid, pod.uid));
        f(key_of(By::ObjectName, pod.name));
        for (const auto& owner : *pod.owners) {
            f(key_of(By::ControllerUid, owner.uid));
            f(key_of(By::ControllerName, owner.name));
        }
        for (const auto& [key, value] : *pod.labels) f(key_of(By::Label, key, value));
    }

    struct Filed {
        uint64_t key = 0;
        uint32_t place = 0;  // in its drawer
    };
    std::vector<Index>& drawer(uint64_t key) { return key == kUnfiled ? unfiled_ : filed_[key]; }

    static constexpr uint64_t kUnfiled = 0;
    absl::flat_hash_map<uint64_t, std::vector<Index>> filed_;
    std::vector<Index> unfiled_;
    absl::flat_hash_map<Index, std::vector<Filed>> keys_;  // where each is filed
};

}  // namespace berth::ledger
