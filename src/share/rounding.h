#pragma once

#include <cstdint>
#include <vector>

#include "share/tree.h"

// Rule 4. A leaf deserves as many of its pods, in the order in which they are kept, as its share covers; the fractions
// that are left go to the largest remainders, those that already run first. Every step is checked in exact integers
// against the cluster and every limit on the way up, so what is published never adds up to more.
namespace berth::share {

// A pod of which the share covers a part.
struct Part {
    uint64_t rank = 0;  // those that run first, then by the largest remainder, then by name; 0: there is none
    uint32_t run = 0;
    uint32_t needs = 0;  // its first need
    NodeId node() const { return static_cast<NodeId>(rank); }
    static uint64_t rank_of(bool present, int64_t remainder, NodeId node);
};

// What one more pod takes of what the root's children share.
struct Need {
    uint32_t column = 0;
    bool last = false;  // of its pod
    int64_t amount = 0;
    int64_t slack =
        0;  // what would have been left of the column, had it been given; the column's shift is to be taken off
};

// What rule 4 gave, in exact amounts, and how it came to it.
struct Whole {
    // Of one column of an inner node.
    struct Sum {
        int64_t sum = 0;           // of what its children deserve
        int64_t least = 0;         // its guarantee
        int64_t most = INT64_MAX;  // its limit
    };
    // Of a column of the root, while one leaf after the other changes.
    struct Column {
        int64_t least_slack = INT64_MAX;  // no need's is less
        int64_t shift = 0;
        int64_t delta = 0;  // during a change: how much more is taken at this point than was
    };
    std::vector<int64_t> taken;  // by key
    std::vector<int64_t> least;  // by key: the guarantee
    std::vector<int64_t> pods;   // by leaf
    std::vector<Sum> sums;       // by inner node and column
    std::vector<Sum> whole;      // of the root's columns: before parts of pods were given
    std::vector<Part> parts;     // in the order in which they are served
    std::vector<uint64_t> uses;  // by part: a bit for each column that it needs, modulo 64
    std::vector<Need> needs;
    std::vector<uint64_t> rank;  // by node: of its part
    std::vector<uint32_t> need;  // by node: the place of its part's needs; kNoIndex: it never had any
    std::vector<uint8_t> given;  // by node: its part is
    std::vector<Column> columns;
    bool tight = false;  // a leaf found less room than its share: what others have depends on its place
};

class Rounding {
public:
    Rounding(const Tree& tree, Whole& whole);
    // Everybody, from nothing.
    void run();
    // One of the root's leaves that has other pods, or another guarantee, while the shares of all others are as they
    // were. False: more than that has to be looked at, and run() is due.
    bool again(NodeId id);

private:
    struct Before;
    void set_limits();
    void begin();
    void hand_out_guarantees();
    int64_t guarantee_of(uint32_t k) const;
    bool take(NodeId id, const int64_t* size, int64_t count);
    bool take_at_root(const Node& node, const int64_t* size, int64_t count);
    bool has_room(const Node& node, uint32_t k, int64_t more) const;
    void add(const Node& node, uint32_t k, int64_t more);
    Part round_down(NodeId id);
    double covered_of(const Node& node, const int64_t* size) const;
    void split_rest(const Node& node);
    int64_t room_of(const Node& node, uint32_t k) const;
    bool short_of_share(NodeId id, const int64_t* size) const;

    // --- parts of pods
    Part part_of(NodeId id, uint32_t run, bool present, double rest);
    uint64_t serve(const Part& part);
    uint64_t serve_below(const Part& part);
    void give(const Part& part, int64_t count);
    uint64_t uses_of(const Part& part) const;

    // --- one leaf again
    enum class Found { Same, Other, Unclear };
    void forget(NodeId id, Before& before);
    void shift_easy_columns(const Before& before);
    uint64_t changed_columns() const;
    size_t place_of(const Part& part) const;
    void move_part(const Part& from, const Part& to);
    bool serve_again(const Before& before, const Part& made);
    int64_t sum_before(size_t place, uint32_t column) const;
    void join(size_t place);
    Found look_again(const Part& part);

    // One amount for each key of its leaf.
    const int64_t* size_of(const Part& part) const { return tree_.sizes.data() + tree_.runs[part.run].sizes; }

    const Tree& tree_;
    Whole& whole_;
    size_t m_;
    const Node* nodes_;
    const Key* keys_;
    const Stated* stated_;
    int64_t* taken_ = nullptr;
    int64_t* least_ = nullptr;
    Whole::Sum* sums_ = nullptr;
};

// Rule 4.
void round_to_pods(const Tree& tree, Whole& whole);
// What a consumer's node deserves of it.
void tell_whole(const Tree& tree, const Whole& whole, NodeId id, Share& share);

}  // namespace berth::share
