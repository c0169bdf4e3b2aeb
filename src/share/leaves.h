#pragma once

#include <map>
#include <vector>

#include "share/problem.h"

namespace berth::share {

// The leaves of one consumer, by set of resources.
class Leaves {
public:
    void add(const Resources& size, int64_t count, bool present) {
        if (count <= 0) return;
        std::vector<ResourceId> set;
        size.for_each([&](ResourceId id, int64_t amount) {
            if (amount > 0) set.push_back(id);
        });
        if (set.empty()) return;
        Leaf& leaf = leaves_[set];
        size.for_each([&](ResourceId id, int64_t amount) { leaf.demand.add(id, times(amount, count)); });
        if (!leaf.pods.empty() && leaf.pods.back().size == size && leaf.pods.back().present == present) {
            leaf.pods.back().count += count;
        } else {
            leaf.pods.push_back({size, count, present});
        }
    }
    // What is asked for beyond all pods.
    void ask(const Resources& beyond) {
        std::vector<ResourceId> set;
        beyond.for_each([&](ResourceId id, int64_t) { set.push_back(id); });
        if (!set.empty()) leaves_[set].demand.add(beyond);
    }
    std::vector<Leaf> take() {
        std::vector<Leaf> out;
        for (auto& [set, leaf] : leaves_) out.push_back(std::move(leaf));
        return out;
    }

    const std::map<std::vector<ResourceId>, Leaf>& all() const { return leaves_; }

private:
    static int64_t times(int64_t amount, int64_t count) {
        int64_t product = 0;
        return __builtin_mul_overflow(amount, count, &product) ? INT64_MAX : product;
    }
    std::map<std::vector<ResourceId>, Leaf> leaves_;
};

}  // namespace berth::share
