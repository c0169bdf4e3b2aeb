#include <algorithm>

#include "share/tree.h"

// What an area may have of a resource that the cluster has without end. No level counts it, so a leaf that starts on
// its way with a guarantee of something else has its part of it at once, and so has one that asks for nothing else.
// Where that is more than an area may have, its leaves start that much less far: each at the same part of where it
// would have, but none before its own guarantee of that resource ends. E.g. the area may have 10 of the limits; a is
// guaranteed 4 of its 8 cpu and asks for 80, b 1 of 4 and asks for 40. They would start at 1/2 and 1/4 with 40 and 10:
// both start at a fifth of that, with 8 and 2.
namespace berth::share {
namespace {

struct Ceiling {
    NodeId area;
    uint32_t column;
};

std::vector<Ceiling> ceilings_of(const Tree& tree) {
    std::vector<Ceiling> out;
    if (tree.areas.empty()) return out;
    for (auto id = static_cast<NodeId>(tree.nodes.size()); id-- > 1;) {  // those within others first
        if (tree.nodes[id].inner == kNoIndex) continue;
        const auto& cap = tree.inner_of(tree.nodes[id]).cap;
        for (uint32_t r = 0; r < cap.size(); ++r) {
            if (tree.pool[r] == kInfinity && cap[r] < kInfinity) out.push_back({id, r});
        }
    }
    return out;
}

class Starts {
public:
    explicit Starts(const Tree& tree) : tree_(tree), start_(tree.nodes.size(), 1), sums_(tree.inners.size()) {
        for (NodeId id = 1; id < tree.nodes.size(); ++id) {
            const Node& node = tree.nodes[id];
            for (const Key& key : tree.keys_of(node)) {
                if (tree.pool[key.column] == kInfinity || key.u <= 0) continue;
                start_[id] = std::min(start_[id], tree.problem.policy == Policy::Surplus ? key.b / key.u : 0);
            }
        }
    }

    void fit(const Ceiling& ceiling) {
        const double cap = tree_.inner_of(tree_.nodes[ceiling.area]).cap[ceiling.column];
        if (sum(ceiling, 1) <= cap) return;
        double low = 0, high = 1;
        for (int i = 0; i < 60; ++i) (sum(ceiling, (low + high) / 2) <= cap ? low : high) = (low + high) / 2;
        std::vector<uint8_t> within = below(ceiling.area);
        for (NodeId id = 1; id < tree_.nodes.size(); ++id) {
            const Key* key = within[id] != 0 ? key_of(id, ceiling.column) : nullptr;
            if (key == nullptr) continue;
            const double at = start(id, *key, low);
            if (at < start_[id]) held_.resize(tree_.nodes.size(), kInfinity);
            if (at < start_[id]) start_[id] = held_[id] = at;
        }
    }

    std::vector<double> held() && { return std::move(held_); }

private:
    const Key* key_of(NodeId id, uint32_t column) const {
        for (const Key& key : tree_.keys_of(tree_.nodes[id])) {
            if (key.column == column && key.u > 0) return &key;
        }
        return nullptr;
    }
    std::vector<uint8_t> below(NodeId area) const {
        std::vector<uint8_t> within(tree_.nodes.size(), 0);
        within[area] = 1;
        for (NodeId id = area + 1; id < within.size(); ++id) within[id] = within[tree_.nodes[id].parent];
        return within;
    }
    double start(NodeId id, const Key& key, double part) const {
        return std::max(part * start_[id], std::min(start_[id], key.b / key.u));
    }
    // What the area would start with.
    double sum(const Ceiling& ceiling, double part) {
        for (size_t i = 0; i < sums_.size(); ++i) sums_[i] = tree_.inners[i].fixed[ceiling.column];
        for (auto id = static_cast<NodeId>(tree_.nodes.size()); id-- > ceiling.area;) {
            const Node& node = tree_.nodes[id];
            if (id == ceiling.area) return sums_[node.inner];
            double& above = sums_[tree_.nodes[node.parent].inner];
            if (node.inner != kNoIndex) {
                above += std::max(sums_[node.inner], tree_.inner_of(node).b[ceiling.column]);
            } else if (const Key* key = key_of(id, ceiling.column); key != nullptr) {
                above += std::max(key->b, start(id, *key, part) * key->u);
            }
        }
        return 0;
    }

    const Tree& tree_;
    std::vector<double> start_;  // by leaf
    std::vector<double> held_;
    std::vector<double> sums_;  // by inner node
};

}  // namespace

std::vector<double> held_starts(const Tree& tree) {
    const auto ceilings = ceilings_of(tree);
    if (ceilings.empty()) return {};
    Starts starts(tree);
    for (const Ceiling& ceiling : ceilings) starts.fit(ceiling);
    return std::move(starts).held();
}

}  // namespace berth::share
