#include "share/watch.h"

#include <algorithm>

namespace berth::share {

uint32_t Watch::put(NodeId node, Bounds bounds) {
    const auto slot = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back(node);
    low_.push_back(bounds.low);
    high_.push_back(bounds.high);
    if (slot % kBlock == 0) blocks_.push_back({});
    Bounds& block = blocks_.back();
    block = {std::max(block.low, bounds.low), std::min(block.high, bounds.high)};
    return slot;
}

void Watch::set(uint32_t slot, Bounds bounds) {
    low_[slot] = bounds.low;
    high_[slot] = bounds.high;
    narrow(slot / kBlock);
}

NodeId Watch::drop(uint32_t slot) {
    const auto last = static_cast<uint32_t>(nodes_.size() - 1);
    low_[slot] = low_[last];
    high_[slot] = high_[last];
    nodes_[slot] = nodes_[last];
    low_.pop_back();
    high_.pop_back();
    nodes_.pop_back();
    if (last % kBlock == 0)
        blocks_.pop_back();
    else
        narrow(last / kBlock);
    if (slot == last) return kRoot;
    narrow(slot / kBlock);
    return nodes_[slot];
}

void Watch::narrow(uint32_t block) {
    const size_t end = std::min<size_t>(nodes_.size(), size_t{block + 1} * kBlock);
    Bounds narrowest;
    for (size_t i = size_t{block} * kBlock; i < end; ++i) {
        narrowest.low = std::max(narrowest.low, low_[i]);
        narrowest.high = std::min(narrowest.high, high_[i]);
    }
    blocks_[block] = narrowest;
}

void Watch::beyond(double level, std::vector<NodeId>& out) const {
    for (size_t block = 0; block < blocks_.size(); ++block) {
        if (level >= blocks_[block].low && level <= blocks_[block].high) continue;
        const size_t end = std::min<size_t>(nodes_.size(), (block + 1) * kBlock);
        for (size_t i = block * kBlock; i < end; ++i) {
            if (level < low_[i] || level > high_[i]) out.push_back(nodes_[i]);
        }
    }
}

}  // namespace berth::share
