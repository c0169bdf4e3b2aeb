#include <algorithm>
#include <cmath>

#include "base/saturating.h"
#include "share/tree.h"

// Rule 4. A leaf deserves as many of its pods, in the order in which they are kept, as its share covers; the fractions
// that are left go to the largest remainders, those that already run first. Every step is checked in exact integers
// against the cluster and every limit on the way up, so what is published never adds up to more.
namespace berth::share {
namespace {

constexpr double kWhole = 1e-9;  // a remainder this near to a whole pod is one

// A pod of which the share covers a part.
struct Part {
    bool present = false;
    int64_t remainder = 0;  // in kWhole of a pod
    NodeId node = 0;
    uint32_t run = 0;
};

int64_t floor_of(double amount) {
    if (amount <= 0) return 0;
    return amount >= 9.2e18 ? INT64_MAX : static_cast<int64_t>(std::floor(amount));
}

int64_t least_of(const Key& key) {
    return floor_of(key.b);
}

class Rounding {
public:
    explicit Rounding(const Tree& tree) : tree_(tree), taken_(whole_.taken), pods_(whole_.pods), sums_(whole_.sums) {
        taken_.resize(tree.keys.size());
        pods_.resize(tree.nodes.size());
        for (const Inner& inner : tree.inners) {
            Sums sums;
            for (auto* values : {&sums.sum, &sums.least}) values->assign(tree.columns.size(), 0);
            sums.most.assign(tree.columns.size(), INT64_MAX);
            for (size_t r = 0; r < sums.least.size(); ++r) sums.least[r] = floor_of(inner.b[r] - inner.fixed[r]);
            sums_.push_back(std::move(sums));
        }
        set_limits();
        begin();
    }

    void run() {
        std::vector<Part> parts;
        for (NodeId id = 1; id < tree_.nodes.size(); ++id) {
            if (tree_.nodes[id].leaf != kNoIndex) round_down(id, parts);
        }
        std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
            if (a.present != b.present) return a.present;
            return a.remainder != b.remainder ? a.remainder > b.remainder : a.node < b.node;
        });
        for (const Part& part : parts) {
            const Resources& size = leaf_of(part.node).pods[part.run].size;
            if (short_of_share(part.node, size) && take(part.node, size, 1)) ++pods_[part.node];
        }
    }

    Whole take() && { return std::move(whole_); }

private:
    using Sums = Whole::Sums;

    const Leaf& leaf_of(NodeId id) const {
        const Node& node = tree_.nodes[id];
        return tree_.problem.consumers[node.consumer].leaves[node.leaf];
    }
    // Of a consumer, whatever its guarantee is.
    static int64_t limit_of(const Consumer& consumer, ResourceId id) {
        int64_t most = consumer.hard.get(id, INT64_MAX);
        if (consumer.borrowing_limit.has(id)) {
            most = std::min(most, base::saturating_add(consumer.reserved.get(id), consumer.borrowing_limit.get(id)));
        }
        return most;
    }

    void set_limits() {
        for (const Node& node : tree_.nodes) {
            if (node.inner == kNoIndex) continue;
            auto& most = sums_[node.inner].most;
            for (size_t r = 0; r < most.size(); ++r) {
                if (node.consumer != kNoIndex) {
                    most[r] = limit_of(tree_.problem.consumers[node.consumer], tree_.columns[r]);
                } else if (tree_.left[r] < INT64_MAX) {
                    most[r] = tree_.left[r] - static_cast<int64_t>(std::ceil(tree_.inners[0].fixed[r]));
                }
            }
        }
        std::fill(sums_[0].least.begin(), sums_[0].least.end(), 0);
    }

    // Everybody has its guarantee.
    void begin() {
        for (auto id = static_cast<NodeId>(tree_.nodes.size()); id-- > 1;) {
            const Node& node = tree_.nodes[id];
            Sums& parent = sums_[tree_.nodes[node.parent].inner];
            if (node.inner == kNoIndex) {
                for (const Key& key : tree_.keys_of(node)) parent.sum[key.column] += least_of(key);
            } else {
                const Sums& own = sums_[node.inner];
                for (size_t r = 0; r < own.sum.size(); ++r) parent.sum[r] += std::max(own.sum[r], own.least[r]);
            }
        }
    }

    // Takes so many pods of this size for a leaf, if everybody above has room for them.
    bool take(NodeId id, const Resources& size, int64_t count) {
        return walk(id, size, count, false) && walk(id, size, count, true);
    }

    // Along the way up: what a leaf takes counts where it is more than the guarantee.
    bool walk(NodeId id, const Resources& size, int64_t count, bool carries_out) {
        const Node& node = tree_.nodes[id];
        const Consumer& consumer = tree_.problem.consumers[node.consumer];
        const bool alone = tree_.nodes[node.parent].consumer != node.consumer;
        const auto keys = tree_.keys_of(node);
        for (size_t k = 0; k < keys.size(); ++k) {
            const ResourceId resource = tree_.columns[keys[k].column];
            const int64_t more = size.get(resource) * count;
            if (more <= 0) continue;
            int64_t& taken = taken_[node.keys_begin + k];
            const int64_t least = least_of(keys[k]);
            int64_t by = std::max(taken + more, least) - std::max(taken, least);
            if (!carries_out && by > 0 && alone && taken + more > limit_of(consumer, resource)) return false;
            if (carries_out) taken += more;
            for (NodeId up = node.parent; by > 0; up = tree_.nodes[up].parent) {
                Sums& sums = sums_[tree_.nodes[up].inner];
                int64_t& sum = sums.sum[keys[k].column];
                const int64_t guaranteed = sums.least[keys[k].column];
                if (!carries_out && sum + by > std::max(guaranteed, sums.most[keys[k].column])) return false;
                const int64_t next = std::max(sum + by, guaranteed) - std::max(sum, guaranteed);
                if (carries_out) sum += by;
                by = next;
                if (up == kRoot) break;
            }
        }
        return true;
    }

    // The pods that the share covers whole; what it covers of the next one is a part.
    void round_down(NodeId id, std::vector<Part>& parts) {
        const Leaf& leaf = leaf_of(id);
        for (uint32_t run = 0; run < leaf.pods.size(); ++run) {
            const PodRun& pods = leaf.pods[run];
            const double covered = covered_of(id, pods.size);
            auto whole = static_cast<int64_t>(std::min(std::floor(covered + kWhole), static_cast<double>(pods.count)));
            if (whole > 0 && !take(id, pods.size, whole)) {
                --whole;
                if (whole > 0 && !take(id, pods.size, whole)) whole = 0;
            }
            pods_[id] += whole;
            if (whole == pods.count) continue;
            const double rest = std::min(1.0, covered - static_cast<double>(whole));
            if (rest > kWhole) parts.push_back({pods.present, std::llround(rest / kWhole), id, run});
            return;
        }
        split_rest(id, leaf);
    }

    // Of the pods' size, how often it goes into what is left of the leaf's share.
    double covered_of(NodeId id, const Resources& size) const {
        const Node& node = tree_.nodes[id];
        const auto keys = tree_.keys_of(node);
        double covered = kInfinity;
        for (size_t k = 0; k < keys.size(); ++k) {
            const int64_t each = size.get(tree_.columns[keys[k].column]);
            if (each <= 0) continue;
            const double left = keys[k].x - static_cast<double>(taken_[node.keys_begin + k]);
            covered = std::min(covered, std::max(0.0, left) / static_cast<double>(each));
        }
        return covered;
    }

    // What is asked for beyond pods can be split anywhere.
    void split_rest(NodeId id, const Leaf& leaf) {
        const Node& node = tree_.nodes[id];
        const auto keys = tree_.keys_of(node);
        for (size_t k = 0; k < keys.size(); ++k) {
            const ResourceId resource = tree_.columns[keys[k].column];
            const double share = keys[k].x * (1 + 1e-13) + 1e-6;
            const int64_t more = std::min(floor_of(share), leaf.demand.get(resource)) - taken_[node.keys_begin + k];
            if (const int64_t fits = std::min(more, room_of(id, k)); fits > 0) take(id, {{resource, fits}}, 1);
        }
    }

    // How much more of a key can be taken: above it everybody has this much.
    int64_t room_of(NodeId id, size_t k) const {
        const Node& node = tree_.nodes[id];
        const Key& key = tree_.keys_of(node)[k];
        int64_t above = INT64_MAX;
        for (NodeId up = node.parent;; up = tree_.nodes[up].parent) {
            const Sums& sums = sums_[tree_.nodes[up].inner];
            above = std::min(above, std::max(sums.least[key.column], sums.most[key.column]) - sums.sum[key.column]);
            if (up == kRoot) break;
        }
        const int64_t guaranteed = std::max<int64_t>(0, least_of(key) - taken_[node.keys_begin + k]);
        const int64_t room = base::saturating_add(std::max<int64_t>(0, above), guaranteed);
        if (tree_.nodes[node.parent].consumer == node.consumer) return room;
        const int64_t limit = limit_of(tree_.problem.consumers[node.consumer], tree_.columns[key.column]);
        return std::min(room, std::max(limit - taken_[node.keys_begin + k], guaranteed));
    }

    // Whether every area above it has less than its own share of what the pod needs.
    bool short_of_share(NodeId id, const Resources& size) const {
        for (NodeId up = tree_.nodes[id].parent; up != kRoot; up = tree_.nodes[up].parent) {
            const uint32_t inner = tree_.nodes[up].inner;
            for (uint32_t r = 0; r < tree_.columns.size(); ++r) {
                if (size.get(tree_.columns[r]) <= 0) continue;
                const double share = tree_.inners[inner].x[r] - tree_.inners[inner].fixed[r];
                if (static_cast<double>(sums_[inner].sum[r]) >= share * (1 - kWhole)) return false;
            }
        }
        return true;
    }

    const Tree& tree_;
    Whole whole_;
    std::vector<int64_t>& taken_;
    std::vector<int64_t>& pods_;
    std::vector<Sums>& sums_;
};

}  // namespace

Whole round_to_pods(const Tree& tree) {
    Rounding rounding(tree);
    rounding.run();
    return std::move(rounding).take();
}

void tell_whole(const Tree& tree, const Whole& whole, NodeId id, Share& share) {
    const Node& node = tree.nodes[id];
    share.pods.resize(tree.problem.consumers[node.consumer].leaves.size());
    if (node.leaf != kNoIndex) share.pods[node.leaf] = whole.pods[id];
    for (NodeId c = node.children_begin; c < node.children_end; ++c) {
        if (tree.nodes[c].consumer == node.consumer) share.pods[tree.nodes[c].leaf] = whole.pods[c];
    }
    if (node.inner == kNoIndex) {
        const auto keys = tree.keys_of(node);
        for (size_t k = 0; k < keys.size(); ++k)
            share.deserved.set(tree.columns[keys[k].column],
                               std::max(whole.taken[node.keys_begin + k], least_of(keys[k])));
        return;
    }
    const Whole::Sums& sums = whole.sums[node.inner];
    for (size_t r = 0; r < sums.sum.size(); ++r) {
        const int64_t deserved = std::max(sums.sum[r], sums.least[r]);
        if (deserved > 0 || tree.inner_of(node).u[r] > 0) share.deserved.set(tree.columns[r], deserved);
    }
}

}  // namespace berth::share
