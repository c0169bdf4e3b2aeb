#include "share/slow_tree.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"

namespace berth::share {
namespace {

constexpr Real kEnd = std::numeric_limits<Real>::infinity();
constexpr Real kSame = 1e-15;

Real halve(Real low, Real high, const std::function<bool(Real)>& fits) {
    for (int i = 0; i < 200; ++i) (fits((low + high) / 2) ? low : high) = (low + high) / 2;
    return low;
}

Real number(const Resources& amounts, ResourceId id, Real otherwise) {
    return amounts.has(id) ? static_cast<Real>(amounts.get(id)) : otherwise;
}

}  // namespace

SlowTree::SlowTree(const Problem& problem) : problem_(problem) {
    for (const auto& consumer : problem.consumers) {
        for (const auto& leaf : consumer.leaves) {
            leaf.demand.for_each([&](ResourceId id, int64_t) {
                if (std::find(resources_.begin(), resources_.end(), id) == resources_.end()) resources_.push_back(id);
            });
        }
    }
    build();
    for (size_t id = nodes_.size(); id-- > 0;) add_up(id);
    for (size_t r = 0; r < resources_.size(); ++r) {
        const Real capacity = nodes_[0].cap[r];
        pool_.push_back(capacity == kEnd ? kEnd : std::max(capacity - nodes_[0].reserved[r], 1e-9 * capacity));
    }
    for (size_t id = 0; id < nodes_.size(); ++id) {
        if (!nodes_[id].leaf) fit(id, id == 0 ? nodes_[0].cap : nodes_[id].b);
    }
    weigh_leaves();
}

size_t SlowTree::add_node(size_t consumer, size_t parent, bool leaf) {
    Node node;
    node.consumer = consumer;
    node.parent = parent;
    node.leaf = leaf;
    for (auto* amounts : {&node.u, &node.b, &node.reserved, &node.fixed, &node.extra})
        amounts->assign(resources_.size(), 0);
    node.cap.assign(resources_.size(), kEnd);
    node.full.assign(resources_.size(), 0);
    nodes_.push_back(std::move(node));
    if (nodes_.size() > 1) nodes_[parent].children.push_back(nodes_.size() - 1);
    return nodes_.size() - 1;
}

void SlowTree::build() {
    add_node(SIZE_MAX, 0, false);
    for (size_t r = 0; r < resources_.size(); ++r) {
        Real left = number(problem_.capacity, resources_[r], kEnd);
        for (const auto& consumer : problem_.consumers) {
            for (const auto& leaf : consumer.leaves)
                if (consumer.infinite) left -= number(leaf.demand, resources_[r], 0);
        }
        nodes_[0].cap[r] = std::max(Real(0), left);
    }
    node_of_.assign(problem_.consumers.size(), SIZE_MAX);
    for (size_t id = 0; id < nodes_.size(); ++id) {
        const std::string above = id == 0 ? "" : problem_.consumers[nodes_[id].consumer].name;
        if (nodes_[id].leaf && id != 0 && node_of_[nodes_[id].consumer] != id) continue;
        for (size_t i = 0; i < problem_.consumers.size(); ++i) {
            const Consumer& child = problem_.consumers[i];
            if (child.parent != above || child.infinite) continue;
            const bool area = std::any_of(problem_.consumers.begin(), problem_.consumers.end(), [&](const auto& other) {
                return other.parent == child.name && !other.infinite;
            });
            node_of_[i] = add_node(i, id, !area && child.leaves.size() <= 1);
            Node& node = nodes_[node_of_[i]];
            node.weight = static_cast<Real>(child.weight);
            Leaf all;
            for (const auto& leaf : child.leaves) all.demand.add(leaf.demand);
            if (node.leaf && !child.leaves.empty()) clip(node, child.leaves.front(), all);
            if (node.leaf) continue;
            for (size_t r = 0; r < resources_.size() && area; ++r) {
                const Real hard = number(child.hard, resources_[r], kEnd);
                const Real most = number(child.borrowing_limit, resources_[r], kEnd);
                node.cap[r] = std::min(hard, number(child.reserved, resources_[r], 0) + most);
            }
            for (const auto& leaf : child.leaves) {
                const size_t part = add_node(i, node_of_[i], true);
                clip(nodes_[part], leaf, all);
            }
        }
    }
}

// A leaf goes along its direction until hard or the borrowing limit; its guarantee does not lend itself to borrowing.
void SlowTree::clip(Node& node, const Leaf& leaf, const Leaf& asked) {
    const Consumer& consumer = problem_.consumers[node.consumer];
    const bool alone = node_of_[node.consumer] == static_cast<size_t>(&node - nodes_.data()) ||
                       nodes_[node.parent].consumer != node.consumer;
    Real within_hard = 1, most = 1;
    for (const ResourceId id : resources_) {
        const Real demand = number(asked.demand, id, 0);
        if (number(leaf.demand, id, 0) <= 0 || demand <= 0) continue;
        within_hard = std::min(within_hard, number(consumer.hard, id, kEnd) / demand);
        most = std::min(most, (number(consumer.reserved, id, 0) + number(consumer.borrowing_limit, id, kEnd)) / demand);
    }
    for (size_t r = 0; r < resources_.size(); ++r) {
        const Real demand = number(leaf.demand, resources_[r], 0);
        node.u[r] = demand * std::min(most, within_hard);
        if (alone && demand > 0)
            node.b[r] = std::min(number(consumer.reserved, resources_[r], 0), demand * within_hard);
    }
}

// What is asked for below a node, its guarantee, and what its idle guarantee keeps from others.
void SlowTree::add_up(size_t id) {
    Node& node = nodes_[id];
    Amounts keeps(resources_.size(), 0);
    const bool part = id != 0 && nodes_[node.parent].consumer == node.consumer;
    for (size_t r = 0; r < resources_.size(); ++r) {
        const Real stated = id == 0 || part ? 0 : number(problem_.consumers[node.consumer].reserved, resources_[r], 0);
        node.reserved[r] = std::max(node.reserved[r], stated);
        if (!node.leaf) {
            node.u[r] = std::min(node.u[r], node.cap[r]);
            node.b[r] = std::min(node.reserved[r], node.u[r] + node.fixed[r]);
        }
        if (id == 0) continue;
        const Real asked = node.leaf ? std::max(node.u[r], node.b[r]) : node.u[r] + node.fixed[r];
        if (!part)
            keeps[r] = std::max(
                Real(0), stated - asked - number(problem_.consumers[node.consumer].lending_limit, resources_[r], kEnd));
        Node& parent = nodes_[node.parent];
        parent.u[r] += node.leaf ? std::max(node.u[r], node.b[r]) : node.u[r];
        parent.fixed[r] += keeps[r] + (node.leaf ? 0 : node.fixed[r]);
        parent.reserved[r] += node.reserved[r];
    }
}

// Guarantees of children shrink alike until they fit.
void SlowTree::fit(size_t id, const Amounts& available) {
    for (size_t r = 0; r < resources_.size(); ++r) {
        const auto asked = [&](const Node& child) {
            return child.leaf ? std::max(child.u[r], child.b[r]) : child.u[r] + child.fixed[r];
        };
        const auto sum = [&](Real part) {
            Real total = 0;
            for (const size_t c : nodes_[id].children) {
                const Node& child = nodes_[c];
                total += child.reserved[r] > 0 ? std::min({child.b[r], asked(child), part * child.reserved[r]}) : 0;
            }
            return total;
        };
        const Real most = std::max(Real(0), available[r] - nodes_[id].fixed[r]);
        if (sum(1) <= most) continue;
        const Real part = halve(0, 1, [&](Real at) { return sum(at) <= most; });
        for (const size_t c : nodes_[id].children) {
            Node& child = nodes_[c];
            child.b[r] = std::min({child.b[r], asked(child), part * child.reserved[r]});
        }
    }
}

// The leaves of one consumer go the same part of their ways.
void SlowTree::weigh_leaves() {
    for (auto& node : nodes_) {
        if (!node.leaf || nodes_[node.parent].consumer != node.consumer) continue;
        Real most = 0;
        for (size_t r = 0; r < resources_.size(); ++r)
            if (pool_[r] > 0 && pool_[r] < kEnd) most = std::max(most, node.u[r] / pool_[r]);
        node.weight = most > 0 ? most : 1;
    }
}

// ---- rule 2

Real SlowTree::unstopped(const Node& node) const {
    Real out = 1;
    for (size_t r = 0; r < resources_.size(); ++r)
        if (node.u[r] > 0 && pool_[r] < kEnd) out = std::min(out, (node.b[r] + node.level * pool_[r]) / node.u[r]);
    return out;
}

// The resource that holds a leaf back; none: it has all, or cannot move.
size_t SlowTree::line(const Node& node) const {
    const Real at = unstopped(node);
    // Who has all of it is done before what it took counts as beyond a guarantee.
    if (node.stopped || node.weight <= 0 || at >= 1 - 100 * kSame) return SIZE_MAX;
    size_t best = SIZE_MAX;
    for (size_t r = 0; r < resources_.size(); ++r) {
        if (node.u[r] <= 0 || pool_[r] <= 0 || pool_[r] == kEnd) continue;
        if ((node.b[r] + node.level * pool_[r]) / node.u[r] > at * (1 + kSame)) continue;
        if (best == SIZE_MAX || pool_[r] / node.u[r] < pool_[best] / node.u[best]) best = r;
    }
    return best;
}

bool SlowTree::takes(const Node& node, size_t r) const {
    return node.u[r] > 0 && (tau(node) * node.u[r] >= node.b[r] * (1 - kSame) || line(node) == r);
}

Real SlowTree::taken(size_t id, size_t r) const {
    const Node& node = nodes_[id];
    if (node.leaf) return std::max(node.b[r], tau(node) * node.u[r]) + node.extra[r];
    Real sum = node.fixed[r];
    for (const size_t c : node.children) sum += counted(c, r);
    return sum;
}

Real SlowTree::counted(size_t id, size_t r) const {
    return nodes_[id].leaf ? taken(id, r) : std::max(nodes_[id].b[r], taken(id, r));
}

bool SlowTree::above(size_t id, size_t r) const {
    return taken(id, r) >= nodes_[id].b[r] * (1 - kSame);
}

// What is taken there beyond guarantees is at an end.
bool SlowTree::closed(size_t id, size_t r) const {
    if (nodes_[id].full[r] != 0) return true;
    return id != 0 && above(id, r) && closed(nodes_[id].parent, r);
}

SlowTree::Pace SlowTree::pace(size_t id) const {
    const Node& node = nodes_[id];
    Pace out{Amounts(resources_.size(), 0), 0};
    if (node.leaf) {
        const size_t at = line(node);
        if (at == SIZE_MAX) return out;
        for (size_t r = 0; r < resources_.size(); ++r)
            if (takes(node, r)) out.growth[r] = node.weight * node.u[r] * pool_[at] / node.u[at];
        return out;
    }
    Real fastest = 0;
    for (const size_t c : node.children) {
        const Pace child = pace(c);
        for (size_t r = 0; r < resources_.size(); ++r) out.growth[r] += child.growth[r];
    }
    for (size_t r = 0; r < resources_.size(); ++r) {
        if (id != 0 && !above(id, r)) out.growth[r] = 0;
        if (pool_[r] < kEnd && pool_[r] > 0) fastest = std::max(fastest, out.growth[r] / pool_[r]);
    }
    out.clock = fastest > 0 ? node.weight / fastest : 0;
    for (Real& growth : out.growth) growth *= out.clock;
    return out;
}

// What grows in an area is all within its guarantee: it goes on at once.
bool SlowTree::free_growth(size_t id) const {
    if (nodes_[id].leaf || id == 0) return false;
    bool grows = false, counts = false;
    for (const size_t c : nodes_[id].children) {
        const Pace child = pace(c);
        for (size_t r = 0; r < resources_.size(); ++r) {
            if (child.growth[r] <= 0) continue;
            grows = true;
            counts = counts || (above(id, r) && pool_[r] < kEnd);
        }
    }
    return grows && !counts;
}

void SlowTree::move(size_t id, Real by) {
    const std::vector<size_t> children = nodes_[id].children;
    std::vector<Real> clocks;
    for (const size_t c : children) clocks.push_back(nodes_[c].leaf ? 0 : pace(c).clock);
    for (size_t i = 0; i < children.size(); ++i) {
        Node& child = nodes_[children[i]];
        if (child.leaf) {
            if (line(child) != SIZE_MAX) child.level += child.weight * by;
        } else if (clocks[i] > 0) {
            move(children[i], by * clocks[i]);
        }
    }
}

// Everything that bends at some moment. As long as it is the same, all goes straight on.
std::vector<uint8_t> SlowTree::structure() const {
    std::vector<uint8_t> out;
    for (size_t id = 0; id < nodes_.size(); ++id) {
        const Node& node = nodes_[id];
        if (node.leaf) out.push_back(static_cast<uint8_t>(line(node)));
        for (size_t r = 0; r < resources_.size(); ++r) {
            const bool bend = node.leaf ? takes(node, r) : id != 0 && above(id, r);
            const bool meets = !node.leaf && taken(id, r) >= node.cap[r] * (1 - kSame);
            out.push_back(static_cast<uint8_t>((bend ? 1 : 0) + (meets ? 2 : 0)));
        }
    }
    return out;
}

// Goes on in one node until something bends; false: nothing moves there.
bool SlowTree::step(size_t id) {
    const auto before = structure();
    const std::vector<Node> here = nodes_;
    const auto same_after = [&](Real by) {
        nodes_ = here;
        move(id, by);
        return structure() == before;
    };
    Real high = 1e-9;
    while (high < 1e30L && same_after(high)) high *= 4;
    if (high >= 1e30L) {
        nodes_ = here;
        return false;
    }
    Real low = 0;
    for (int i = 0; i < 200 && high - low > 1e-19L * high; ++i) {
        const Real middle = (low + high) / 2;
        (same_after(middle) ? low : high) = middle;
    }
    nodes_ = here;
    move(id, high);
    return true;
}

void SlowTree::fill_up() {
    for (size_t id = 0; id < nodes_.size(); ++id) {
        for (size_t r = 0; r < resources_.size() && !nodes_[id].leaf; ++r)
            if (taken(id, r) >= nodes_[id].cap[r] * (1 - kSame)) nodes_[id].full[r] = 1;
    }
}

void SlowTree::stop_leaves() {
    for (auto& node : nodes_) {
        for (size_t r = 0; r < resources_.size() && node.leaf && !node.stopped; ++r) {
            if (!takes(node, r) || !closed(node.parent, r)) continue;
            node.tau = unstopped(node);
            node.stopped = true;
        }
    }
}

void SlowTree::run() {
    for (auto& node : nodes_) {
        if (node.leaf && std::all_of(node.u.begin(), node.u.end(), [](Real u) { return u <= 0; })) node.stopped = true;
    }
    for (int moments = 0;; ++moments) {
        CHECK(moments < 10000);
        fill_up();
        stop_leaves();
        size_t id = nodes_.size();
        while (--id > 0 && !free_growth(id)) {
        }
        if (!step(id)) break;
    }
    spread();
}

// ---- rule 3

Real SlowTree::room(size_t id, size_t r) const {
    const Node& node = nodes_[id];
    if (node.leaf) return std::max(Real(0), node.u[r] - taken(id, r));
    Real sum = 0;
    for (const size_t c : node.children) sum += nodes_[c].weight > 0 ? room(c, r) : 0;
    return std::max(Real(0), std::min(sum, node.cap[r] - counted(id, r)));
}

void SlowTree::give(size_t id, size_t r, Real amount) {
    if (nodes_[id].leaf) {
        nodes_[id].extra[r] += amount;
        return;
    }
    std::vector<std::pair<size_t, Real>> rooms;
    for (const size_t c : nodes_[id].children)
        if (nodes_[c].weight > 0 && room(c, r) > 0) rooms.emplace_back(c, room(c, r));
    const auto sum = [&](Real level) {
        Real total = 0;
        for (const auto& [c, most] : rooms) total += std::min(most, nodes_[c].weight * level);
        return total;
    };
    const Real level = halve(0, 1e12, [&](Real at) { return sum(at) <= amount; });
    for (const auto& [c, most] : rooms) give(c, r, std::min(most, nodes_[c].weight * level));
}

// First what an area's guarantee holds inside it, then what the cluster has left.
void SlowTree::spread() {
    for (size_t id = nodes_.size(); id-- > 0;) {
        if (nodes_[id].leaf || (id == 0 && !problem_.spread)) continue;
        for (size_t r = 0; r < resources_.size(); ++r) {
            const Real most = id == 0 ? nodes_[0].cap[r] : nodes_[id].b[r];
            if (const Real held = most - taken(id, r); held > 0) give(id, r, held);
        }
    }
}

double SlowTree::share(size_t consumer, ResourceId id) const {
    const size_t node = node_of_[consumer];
    for (size_t r = 0; r < resources_.size(); ++r)
        if (resources_[r] == id)
            return static_cast<double>(counted(node, r) - (nodes_[node].leaf ? Real(0) : nodes_[node].fixed[r]));
    return 0;
}

}  // namespace berth::share
