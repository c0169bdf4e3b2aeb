#include <algorithm>

#include "base/saturating.h"
#include "share/tree.h"

// Rule 1.
//   b = min(R, u); where the sum does not fit, the largest lambda <= 1 with sum of min(u, lambda R) <= C.
//   S = max(C - sum of R, eps C)
// E.g. C = 100, reserved 30 and 90, both ask for more: lambda = 100/120, so 25 and 75.
namespace berth::share {
namespace {

constexpr double kEps = 1e-9;  // of the capacity: the pool when everything is reserved

// What the infinite ones leave.
void take_infinite(Tree& tree) {
    auto& left = tree.left;
    left.clear();
    for (const ResourceId id : tree.columns) left.push_back(tree.problem.capacity.get(id, INT64_MAX));
    for (const uint32_t i : tree.infinite) {
        for (const auto& leaf : tree.problem.consumers[i].leaves) {
            leaf.demand.for_each([&](ResourceId id, int64_t amount) {
                int64_t& rest = left[tree.column_by_id[id.index]];
                if (rest < INT64_MAX) rest = std::max<int64_t>(0, base::saturating_subtract(rest, amount));
            });
        }
    }
    auto& cap = tree.inners[0].cap;
    for (size_t r = 0; r < cap.size(); ++r) {
        if (left[r] < INT64_MAX) cap[r] = static_cast<double>(left[r]);
    }
}

struct Limit {
    double hard = kInfinity;
    double borrowed = kInfinity;
};

Limit limits_of(const Consumer& consumer, ResourceId id) {
    Limit limit;
    if (consumer.hard.has(id)) limit.hard = static_cast<double>(consumer.hard.get(id));
    if (consumer.borrowing_limit.has(id)) {
        limit.borrowed =
            static_cast<double>(consumer.reserved.get(id)) + static_cast<double>(consumer.borrowing_limit.get(id));
    }
    return limit;
}

// How much of its direction a leaf may go, when all leaves of its consumer together ask for `asked`.
void clip(Tree& tree, Node& node, bool limited, const std::vector<double>* asked) {
    node.most = 1;
    node.cut = nullptr;
    Key* keys = tree.keys.data();
    const Stated* stated = tree.stated.data();
    if (!limited) {
        for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
            keys[k].u = static_cast<double>(stated[k].demand);
            keys[k].b = static_cast<double>(std::min(stated[k].reserved, stated[k].demand));
        }
        return;
    }
    const Consumer& consumer = tree.problem.consumers[node.consumer];
    double within_hard = 1;
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
        const Key& key = keys[k];
        const double demand = asked != nullptr ? (*asked)[key.column] : static_cast<double>(stated[k].demand);
        const Limit limit = limits_of(consumer, tree.columns[key.column]);
        if (limit.hard < demand * within_hard) within_hard = limit.hard / demand;
        if (limit.borrowed < demand * node.most) {
            node.most = limit.borrowed / demand;
            node.cut = "borrowingLimit";
        }
    }
    if (within_hard < node.most) {
        node.most = within_hard;
        node.cut = "hard";
    }
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
        const double asked_for = static_cast<double>(stated[k].demand);
        keys[k].u = asked_for * node.most;
        keys[k].b = std::min(static_cast<double>(stated[k].reserved), asked_for * within_hard);
    }
}

// The leaves of a consumer that has several, or areas below it, and what it may have in all.
void clip_inner(Tree& tree, const Node& node, std::vector<double>& asked) {
    const Consumer& consumer = tree.problem.consumers[node.consumer];
    asked.assign(tree.columns.size(), 0);
    for (NodeId c = node.children_begin; c < node.children_end; ++c) {
        const Node& child = tree.nodes[c];
        if (child.consumer != node.consumer) continue;
        for (uint32_t k = child.keys_begin; k < child.keys_end; ++k)
            asked[tree.keys[k].column] += static_cast<double>(tree.stated[k].demand);
    }
    bool area = false;
    for (NodeId c = node.children_begin; c < node.children_end; ++c) {
        if (tree.nodes[c].consumer == node.consumer) clip(tree, tree.nodes[c], node.limited, &asked);
        area = area || tree.nodes[c].consumer != node.consumer;
    }
    if (!area) return;
    auto& cap = tree.inner_of(node).cap;
    for (size_t r = 0; r < cap.size(); ++r) {
        const Limit limit = limits_of(consumer, tree.columns[r]);
        cap[r] = std::min(limit.hard, limit.borrowed);
    }
}

// Of a consumer's idle guarantee, what is not lent is seen by its parent.
void keep_idle(Tree& tree, const Node& node, Inner& parent) {
    const Consumer& consumer = tree.problem.consumers[node.consumer];
    const auto asked = [&](uint32_t column) {
        if (node.inner != kNoIndex) return tree.inner_of(node).u[column] + tree.inner_of(node).fixed[column];
        for (const Key& key : tree.keys_of(node)) {
            if (key.column == column) return std::max(key.u, key.b);
        }
        return 0.0;
    };
    consumer.lending_limit.for_each([&](ResourceId id, int64_t limit) {
        const uint32_t column = tree.column_of(id);
        if (column == kNoIndex || !consumer.reserved.has(id)) return;
        const double idle = static_cast<double>(consumer.reserved.get(id)) - asked(column);
        parent.fixed[column] += std::max(0.0, idle - static_cast<double>(limit));
    });
}

// There may be very many leaves of the root, so what they ask for and are guaranteed is added up at once.
void clip_demands(Tree& tree) {
    std::vector<double> asked;
    Inner& root = tree.inners.front();
    tree.guaranteed.assign(tree.columns.size(), 0);
    double* u = root.u.data();
    double* b = tree.guaranteed.data();
    for (Node& node : tree.nodes) {
        node.scaled = false;
        if (node.consumer == kNoIndex) continue;
        if (node.inner != kNoIndex) {
            clip_inner(tree, node, asked);
            continue;
        }
        if (tree.nodes.data()[node.parent].consumer == node.consumer) continue;
        clip(tree, node, node.limited, nullptr);
        if (node.parent != kRoot) continue;
        for (const Key& key : tree.keys_of(node)) {
            u[key.column] += std::max(key.u, key.b);
            b[key.column] += key.b;
        }
        if (node.limited) keep_idle(tree, node, root);
    }
}

// What a node asks for, and keeps from being lent, is seen by its parent. Children stand behind their parents.
void sum_up(Tree& tree) {
    if (tree.areas.empty()) return;
    for (auto id = static_cast<NodeId>(tree.nodes.size()); id-- > 1;) {
        const Node& node = tree.nodes.data()[id];
        if (node.parent == kRoot && node.inner == kNoIndex) continue;
        const Node& above = tree.nodes.data()[node.parent];
        Inner& parent = tree.inners.data()[above.inner];
        if (node.inner == kNoIndex) {
            double* u = parent.u.data();
            for (const Key& key : tree.keys_of(node)) u[key.column] += std::max(key.u, key.b);
        } else {
            const Consumer& consumer = tree.problem.consumers[node.consumer];
            Inner& inner = tree.inner_of(node);
            for (size_t r = 0; r < inner.u.size(); ++r) {
                inner.u[r] = std::min(inner.u[r], inner.cap[r]);
                const auto stated = static_cast<double>(consumer.reserved.get(tree.columns[r]));
                inner.reserved[r] = std::max(inner.reserved[r], stated);
                parent.reserved[r] += inner.reserved[r];
                parent.u[r] += inner.u[r];
                parent.fixed[r] += inner.fixed[r];
            }
        }
        if (node.limited && above.consumer != node.consumer) keep_idle(tree, node, parent);
    }
}

void measure_pool(Tree& tree) {
    const Inner& root = tree.inners[0];
    tree.pool.resize(tree.columns.size());
    for (size_t r = 0; r < tree.pool.size(); ++r) {
        const double capacity = root.cap[r];
        const double open = tree.problem.policy == Policy::Floor ? capacity : capacity - root.reserved[r];
        tree.pool[r] = capacity == kInfinity ? kInfinity : std::max(open, kEps * capacity);
    }
}

// The guarantees of a node's children within what the node has of each column.
class Guarantees {
public:
    explicit Guarantees(Tree& tree) : tree_(tree) {}

    void within(NodeId id, const std::vector<double>& available) {
        const Node node = tree_.nodes[id];
        const auto add = [&](uint32_t column, double& b, double, double) { sums_[column] += b; };
        if (id == kRoot) {
            sums_ = tree_.guaranteed;
            for (const NodeId c : tree_.areas) each(tree_.nodes[c], add);
        } else {
            sums_.assign(tree_.columns.size(), 0);
            for (NodeId c = node.children_begin; c < node.children_end; ++c) each(tree_.nodes[c], add);
        }
        for (uint32_t r = 0; r < sums_.size(); ++r) {
            if (sums_[r] <= available[r]) continue;
            shrink(node, r, available[r]);
            if (id == kRoot) tree_.shrunk[r] = 1;
        }
    }

private:
    // f(column, b, reserved, asked) for every column of a child.
    template <class F>
    void each(Node& child, F&& f) {
        if (child.inner == kNoIndex) {
            for (uint32_t k = child.keys_begin; k < child.keys_end; ++k) {
                Key& key = tree_.keys[k];
                f(key.column, key.b, static_cast<double>(tree_.stated[k].reserved), std::max(key.u, key.b));
            }
            return;
        }
        Inner& inner = tree_.inner_of(child);
        for (uint32_t r = 0; r < inner.b.size(); ++r) f(r, inner.b[r], inner.reserved[r], inner.u[r] + inner.fixed[r]);
    }

    void shrink(const Node& node, uint32_t column, double available) {
        vessels_.clear();
        for (NodeId c = node.children_begin; c < node.children_end; ++c) {
            each(tree_.nodes[c], [&](uint32_t r, double&, double reserved, double asked) {
                if (r == column && reserved > 0) vessels_.push_back({reserved, asked});
            });
        }
        const double lambda = std::min(1.0, water_level(vessels_, available));
        for (NodeId c = node.children_begin; c < node.children_end; ++c) {
            Node& child = tree_.nodes[c];
            each(child, [&](uint32_t r, double& b, double reserved, double asked) {
                if (r != column || reserved <= 0) return;
                child.scaled = child.scaled || lambda * reserved < std::min(reserved, asked) * (1 - 1e-9);
                b = std::min(b, std::min(asked, lambda * reserved));
            });
        }
    }

    Tree& tree_;
    std::vector<double> sums_;
    std::vector<Vessel> vessels_;
};

void fit_guarantees(Tree& tree) {
    tree.shrunk.assign(tree.columns.size(), 0);
    for (Inner& inner : tree.inners) {
        for (size_t r = 0; r < inner.b.size(); ++r)
            inner.b[r] = std::min(inner.reserved[r], inner.u[r] + inner.fixed[r]);
    }
    Guarantees guarantees(tree);
    for (NodeId id = 0; id < tree.nodes.size(); ++id) {
        if (tree.nodes[id].inner == kNoIndex) continue;
        const Inner& inner = tree.inner_of(tree.nodes[id]);
        std::vector<double> available = id == kRoot ? inner.cap : inner.b;
        for (size_t r = 0; r < available.size(); ++r) available[r] = std::max(0.0, available[r] - inner.fixed[r]);
        guarantees.within(id, available);
        if (tree.areas.empty()) return;
    }
}

// The leaves of one consumer go the same part of their ways: a leaf's level counts its dominant share, so its weight is
// the dominant share of all it asks for.
void weigh_leaves(Tree& tree) {
    for (const NodeId id : tree.parts) {
        Node& node = tree.nodes[id];
        double most = 0;
        for (const Key& key : tree.keys_of(node)) {
            const double pool = tree.pool[key.column];
            if (pool > 0 && pool < kInfinity) most = std::max(most, key.u / pool);
        }
        node.weight = most > 0 ? most : 1;
    }
}

}  // namespace

void clip_leaf(Tree& tree, Node& node) {
    clip(tree, node, node.limited, nullptr);
}

void guarantee(Tree& tree) {
    for (Inner& inner : tree.inners) {
        for (auto* values : {&inner.u, &inner.fixed}) std::fill(values->begin(), values->end(), 0);
        inner.reserved = inner.stated;
        std::fill(inner.cap.begin(), inner.cap.end(), kInfinity);
    }
    take_infinite(tree);
    clip_demands(tree);
    sum_up(tree);
    measure_pool(tree);
    fit_guarantees(tree);
    weigh_leaves(tree);
}

}  // namespace berth::share
