#pragma once

#include <absl/container/inlined_vector.h>

#include "share/rounding.h"

namespace berth::share {

// One of the root's leaves asks for something else, of the same resources. Nobody's level moves if
// - it has less than it asks for, before and after, in the same direction and with the same guarantee: its way is the
//   same as far as it goes. E.g. it has 6 of 9 cpu, and a tenth pod comes;
// - it has all it asks for, before and after, of resources that are not full: nobody else is nearer to their end.
// What is left for rule 3 is another then, so others have another fair share of what is not full. That makes no whole
// pod as long as those who have room there ask for pods of one size: it is another resource that stops them.
class Change {
public:
    Change(Tree& tree, NodeId id);  // before the tree has its pods and its demand

    // True: nobody's level moves, and `whole` says what everybody deserves now. Otherwise all rules are due anew.
    bool settle(Whole& whole);

private:
    bool parallel() const;
    bool stays_short(Node& leaf);
    bool stays_whole(const Node& leaf);

    Tree& tree_;
    NodeId id_;
    bool concerned_ = false;
    absl::InlinedVector<Key, 4> keys_;
    absl::InlinedVector<Stated, 4> stated_;
};

}  // namespace berth::share
