#pragma once

#include <vector>

#include "share/problem.h"

namespace berth::share {

// Rules 1 to 3 through trees of areas by their definitions, for tests: one moment after the other, each found by
// halving, everything computed anew at every try. It shares nothing with the solver but the problem.
//
//   A leaf at level l has x = max(b, tau u), tau = min(1, min over r of (b[r] + l S[r]) / u[r]). A child's level is its
//   weight times its parent's inner clock. The level of an area grows by what it takes beyond its guarantee, in the
//   resource in which it grows fastest; what grows below it is free. Who needs more of a resource that is full stops.
// Pools of next to nothing make small errors large.
using Real = long double;

class SlowTree {
public:
    explicit SlowTree(const Problem& problem);
    void run();
    double share(size_t consumer, ResourceId id) const;

private:
    using Amounts = std::vector<Real>;
    struct Node {
        size_t consumer = 0;
        Real weight = 1;
        size_t parent = 0;
        std::vector<size_t> children;
        bool leaf = false;
        Amounts u, b, reserved, cap, fixed, extra;  // extra: given by rule 3
        Real level = 0;                             // of a leaf
        Real tau = 0;                               // where it stands, once it is stopped
        bool stopped = false;
        std::vector<uint8_t> full;  // of an area
    };
    struct Pace {
        Amounts growth;  // that its parent sees, by the parent's clock
        Real clock = 0;  // its own, by the parent's
    };

    void build();
    size_t add_node(size_t consumer, size_t parent, bool leaf);
    void clip(Node& node, const Leaf& leaf, const Leaf& asked);
    void add_up(size_t id);
    void fit(size_t id, const Amounts& available);
    void weigh_leaves();

    Real unstopped(const Node& node) const;
    Real tau(const Node& node) const { return node.stopped ? node.tau : unstopped(node); }
    size_t line(const Node& node) const;
    bool takes(const Node& node, size_t r) const;
    Real taken(size_t id, size_t r) const;
    Real counted(size_t id, size_t r) const;
    bool above(size_t id, size_t r) const;
    bool closed(size_t id, size_t r) const;
    Pace pace(size_t id) const;
    bool free_growth(size_t id) const;
    void move(size_t id, Real by);
    void fill_up();
    void stop_leaves();
    std::vector<uint8_t> structure() const;
    bool step(size_t id);

    Real room(size_t id, size_t r) const;
    void give(size_t id, size_t r, Real amount);
    void spread();

    const Problem& problem_;
    std::vector<ResourceId> resources_;
    Amounts pool_;
    std::vector<Node> nodes_;  // the cluster first; parents before their children
    std::vector<size_t> node_of_;
};

}  // namespace berth::share
