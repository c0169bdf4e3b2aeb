#include "sched/fast/max_tree.h"

namespace berth::sched::fast {

void MaxTree::resize(size_t size) {
    size_t blocks = size / kBlock + (size % kBlock != 0 || size == 0);
    if (!levels_.empty() && this->blocks() == blocks) return;
    levels_.clear();
    do {
        blocks = size / kBlock + (size % kBlock != 0 || size == 0);
        levels_.emplace_back(blocks * kBlock);
        size = blocks;
    } while (blocks > 1 || levels_.size() < 2);
}

// A larger key becomes the top of its blocks; a smaller one makes a block look for its top only when it was the top.
void MaxTree::set(size_t at, Key key) {
    Key old = levels_[0][at];
    levels_[0][at] = key;
    for (size_t level = 1; level < levels_.size(); ++level) {
        at /= kBlock;
        Key& top = levels_[level][at];
        Key now = top;
        if (key >= top) {
            now = key;
        } else if (old == top) {
            now = top_of_block(levels_[level - 1].data() + at * kBlock);
        }
        if (now == top) return;
        old = top;
        key = top = now;
    }
}

void MaxTree::fill_above(size_t level) {
    for (size_t above = level + 1; above < levels_.size(); ++above) {
        const size_t blocks = levels_[above - 1].size() / kBlock;
        for (size_t i = 0; i < blocks; ++i) levels_[above][i] = top_of_block(levels_[above - 1].data() + i * kBlock);
    }
}

size_t MaxTree::bytes() const {
    size_t keys = 0;
    for (const auto& level : levels_) keys += level.size();
    return keys * sizeof(Key);
}

}  // namespace berth::sched::fast
