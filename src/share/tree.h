#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "share/problem.h"
#include "share/water.h"

// A problem in rows and columns, ready to be solved: the cluster is the root, areas and consumers with several leaves
// are inner nodes, everything else is a leaf. Siblings stand in the order of their names, so no result depends on the
// order of input.
namespace berth::share {

using NodeId = uint32_t;
inline constexpr NodeId kRoot = 0;
inline constexpr uint32_t kNoIndex = UINT32_MAX;

// One resource of one leaf: what the rules work with. There are many, and each rule goes through all of them.
struct Key {
    uint32_t column = 0;
    bool taking = false;  // while levels rise: its direction has passed the guarantee
    double u = 0;         // the demand, clipped by hard and borrowing limit along the leaf's direction
    double b = 0;         // what is guaranteed of it
    double x = 0;         // its share
};

// The same resource of the same leaf, as the problem states it.
struct Stated {
    int64_t demand = 0;
    int64_t reserved = 0;       // of the consumer, when this is its only leaf
    int64_t limit = INT64_MAX;  // hard, borrowing limit, in the same case
};

// What an inner node knows of every column.
struct Inner {
    std::vector<double> u;      // asked for below it
    std::vector<double> b;      // guaranteed
    std::vector<double> cap;    // hard, borrowing limit; of the root: the capacity
    std::vector<double> fixed;  // idle guarantees below it that are not lent
    std::vector<double> x;      // what is shared out below it
    std::vector<double> reserved;
    std::vector<double> stated;  // what its children that are no inner nodes are guaranteed; no change alters it
};

// Pods of one size, of one leaf.
struct Run {
    int64_t count = 0;
    int64_t present = 0;  // so many of them run, and those come first
    uint32_t sizes = 0;   // of the tree's: one amount for each key of the leaf
};

struct Node {
    NodeId parent = kRoot;
    uint32_t consumer = kNoIndex;  // of the problem; kNoIndex: the root
    uint32_t leaf = kNoIndex;      // of the consumer; kNoIndex: an inner node, or nothing is asked for
    uint32_t inner = kNoIndex;
    uint32_t keys_begin = 0, keys_end = 0;
    uint32_t runs_begin = 0, runs_end = 0, runs_room = 0;
    NodeId children_begin = 0, children_end = 0;
    double weight = 1;
    double most = 1;            // of its demand, what hard and borrowing limit allow
    const char* cut = nullptr;  // which of them: "hard", "borrowingLimit"
    bool scaled = false;        // its guarantee did not fit
    bool limited = false;       // its consumer has a hard, borrowing or lending limit
};

// Hard and borrowing limit of a consumer, whatever its guarantee is.
int64_t limit_of(const Consumer& consumer, ResourceId id);

struct Tree {
    explicit Tree(const Problem& problem);
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;

    std::span<Key> keys_of(const Node& node) {
        return {keys.data() + node.keys_begin, node.keys_end - node.keys_begin};
    }
    std::span<const Key> keys_of(const Node& node) const {
        return {keys.data() + node.keys_begin, node.keys_end - node.keys_begin};
    }
    Inner& inner_of(const Node& node) { return inners[node.inner]; }
    const Inner& inner_of(const Node& node) const { return inners[node.inner]; }
    // The column of a resource; kNoIndex: nobody asks for it.
    uint32_t column_of(ResourceId id) const {
        return id.index < column_by_id.size() ? column_by_id[id.index] : kNoIndex;
    }

    // The pods of a leaf as the problem has them now.
    void lay_pods(Node& node);
    // It asks for pods of one size and for nothing else, so the resource that stops it says how many it has.
    bool plain(const Node& node) const;
    // What no change of a demand alters.
    void note_constants();

    const Problem& problem;
    std::vector<ResourceId> columns;  // by name
    std::vector<uint32_t> column_by_id;
    std::vector<Node> nodes;  // parents first, siblings side by side
    std::vector<Key> keys;
    std::vector<Stated> stated;              // by key
    std::vector<Run> runs;                   // side by side for each leaf
    std::vector<int64_t> sizes;              // of a run's pods, by key
    std::vector<Inner> inners;               // the root's first
    std::vector<NodeId> node_of;             // by consumer; kNoIndex: it is infinite
    std::vector<uint32_t> infinite;          // consumers
    std::vector<NodeId> areas;               // the root's children that are inner nodes
    std::vector<NodeId> parts;               // leaves of consumers that have several
    std::vector<std::vector<NodeId>> users;  // by column: the root's leaves that need it
    std::vector<int64_t> left;               // of the capacity after the infinite ones, by column; INT64_MAX: infinite
    std::vector<uint8_t> full;               // by column: nothing is left of it
    std::vector<uint8_t> shrunk;             // by column: the root's guarantees do not fit
    std::vector<double> tau;                 // by leaf: how far it came on its way; 1: it has all it asks for
    std::vector<double> risen;               // by column: what rule 2 shared out
    std::vector<uint8_t> mixed;              // by column: what rule 3 gives of it may be whole pods to somebody
    std::vector<double> guaranteed;          // by column: what the root's leaves state and ask for, before it is fitted
    std::vector<double> pool;  // S: what a level of 1 is worth, by column; kInfinity where the capacity is
};

// What a leaf of the root asks for, and is guaranteed, within the limits of its consumer.
void clip_leaf(Tree& tree, Node& node);
// Rule 1: what is left after the infinite ones, demands within their limits, guarantees that fit, the pool.
void guarantee(Tree& tree);
// How far on its way each leaf may start at most, by node; none where no area limits what the cluster has without end.
std::vector<double> held_starts(const Tree& tree);
// Rule 2: one level is raised until every leaf has what it asks for or is stopped by a resource that is full.
void raise_levels(Tree& tree);
// Rule 3, and guarantees of areas that their directions leave unused: filled by weight, each resource alone.
void fill_rest(Tree& tree);

}  // namespace berth::share
