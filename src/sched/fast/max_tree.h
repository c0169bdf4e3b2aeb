#pragma once

#include <algorithm>
#include <vector>

#include "sched/fast/kernel.h"

namespace berth::sched::fast {

// The largest of many keys, each of which may change: 64 keys under one, 64 of those under one, and so on.
class MaxTree {
public:
    // Room for so many keys. They are 0 when the size is another than before, else as they were.
    void resize(size_t size);
    void clear_keys() { std::fill(levels_[0].begin(), levels_[0].end(), 0); }
    void set(size_t at, Key key);
    Key at(size_t at) const { return levels_[0][at]; }
    Key top() const { return top_of_block(levels_.back().data()); }
    size_t bytes() const;

    // To fill it in one go: write keys() and block_tops(), padding included, then call filled().
    size_t blocks() const { return levels_[0].size() / kBlock; }
    const Key* keys() const { return levels_[0].data(); }
    Key* keys() { return levels_[0].data(); }
    Key* block_tops() { return levels_[1].data(); }
    void filled() { fill_above(1); }
    // The same after keys() alone were written.
    void keys_filled() { fill_above(0); }

private:
    void fill_above(size_t level);

    // levels_[0] holds the keys, the last is one block; each is padded with 0 to whole blocks.
    std::vector<std::vector<Key>> levels_;
};

}  // namespace berth::sched::fast
