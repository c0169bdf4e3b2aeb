#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/hash/hash.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/selector.h"

namespace berth::ledger {

// Finds the few of many selectors that could match some labels: a selector that asks for key=value is filed under it,
// the others are always looked at. What it finds still has to be matched.
class LabelIndex {
public:
    void add(const Selector& selector, uint32_t id) {
        if (!selector.matches_nothing()) shelf(selector).push_back(id);
    }
    void remove(const Selector& selector, uint32_t id) {
        if (selector.matches_nothing()) return;
        std::vector<uint32_t>& from = shelf(selector);
        std::erase(from, id);
        if (from.empty() && &from != &others_) by_label_.erase(label_of(selector));
    }
    bool empty() const { return others_.empty() && by_label_.empty(); }
    // Calls f(id) once for each.
    template <class F>
    void candidates(const Labels& labels, F f) const {
        for (const uint32_t id : others_) f(id);
        if (by_label_.empty()) return;
        for (const auto& [key, value] : labels) {
            const auto found = by_label_.find(absl::HashOf(key, value));
            if (found == by_label_.end()) continue;
            for (const uint32_t id : found->second) f(id);
        }
    }

private:
    static const model::Requirement* exact(const Selector& selector) {
        using Op = model::Requirement::Op;
        for (const auto& requirement : selector.requirements()) {
            const bool equal =
                requirement.op == Op::Equals || requirement.op == Op::DoubleEquals || requirement.op == Op::In;
            if (equal && requirement.values.size() == 1) return &requirement;
        }
        return nullptr;
    }
    static size_t label_of(const Selector& selector) {
        const model::Requirement* found = exact(selector);
        return absl::HashOf(found->key, found->values.front());
    }
    std::vector<uint32_t>& shelf(const Selector& selector) {
        return exact(selector) ? by_label_[label_of(selector)] : others_;
    }

    // By the hash of key and value: two that collide only find too much. Within one set of labels two entries with
    // one hash would find an id twice; 64 bits make that a matter of theory, and callers tolerate it.
    absl::flat_hash_map<size_t, std::vector<uint32_t>> by_label_;
    std::vector<uint32_t> others_;
};

}  // namespace berth::ledger
