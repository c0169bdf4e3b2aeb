#include "share/change.h"

#include <algorithm>

#include "base/int128.h"

namespace berth::share {
namespace {

constexpr double kExact = 9e15;  // sums of whole amounts up to here are doubles
constexpr double kApart = 1e-9;  // of what is asked for, and of a capacity: what is nearer is not told apart

}  // namespace

Change::Change(Tree& tree, NodeId id) : tree_(tree), id_(id) {
    const Node& leaf = tree.nodes[id];
    concerned_ =
        leaf.parent == kRoot && leaf.leaf != kNoIndex && tree.problem.consumers[leaf.consumer].lending_limit.empty();
    if (!concerned_) return;
    const auto keys = tree.keys_of(leaf);
    keys_.assign(keys.begin(), keys.end());
    const auto first = tree.stated.begin() + leaf.keys_begin;
    stated_.assign(first, first + static_cast<ptrdiff_t>(keys.size()));
}

bool Change::settle(Whole& whole) {
    if (!concerned_) return false;
    Node& leaf = tree_.nodes[id_];
    clip_leaf(tree_, leaf);
    const auto keys = tree_.keys_of(leaf);
    for (size_t k = 0; k < keys.size(); ++k) {
        const uint32_t column = keys[k].column;
        if (keys[k].u <= 0 || keys_[k].u <= 0 || tree_.shrunk[column] != 0) return false;
        if (tree_.inners.front().u[column] + keys[k].u > kExact) return false;
    }
    const double tau = tree_.tau[id_];
    const bool stays = tau >= 1 ? stays_whole(leaf) : tau < 1 - kApart && stays_short(leaf);
    return stays && Rounding(tree_, whole).again(id_);
}

// Told exactly, by what is stated.
bool Change::parallel() const {
    const Stated* now = tree_.stated.data() + tree_.nodes[id_].keys_begin;
    for (size_t k = 1; k < stated_.size(); ++k) {
        if (int128(now[k].demand) * stated_[0].demand != int128(now[0].demand) * stated_[k].demand) return false;
    }
    return true;
}

bool Change::stays_short(Node& leaf) {
    if (!parallel()) return false;
    const auto keys = tree_.keys_of(leaf);
    bool all_full = true;
    for (size_t k = 0; k < keys.size(); ++k) {
        if (keys[k].b != keys_[k].b) return false;
        if (!tree_.problem.spread || tree_.full[keys[k].column] != 0) continue;
        all_full = false;
        if (tree_.mixed[keys[k].column] != 0) return false;
    }
    if (!all_full && !tree_.plain(leaf)) return false;
    double& tau = tree_.tau[id_];
    const double now = tau * keys_[0].u / keys[0].u;
    if (now >= 1 - kApart) return false;
    tau = now;
    return true;
}

bool Change::stays_whole(const Node& leaf) {
    const auto keys = tree_.keys_of(leaf);
    const auto& cap = tree_.inners.front().cap;
    if (leaf.weight <= 0) return false;
    for (size_t k = 0; k < keys.size(); ++k) {
        const uint32_t column = keys[k].column;
        if (tree_.full[column] != 0 || (tree_.problem.spread && tree_.mixed[column] != 0)) return false;
        const double more = std::max(keys[k].u, keys[k].b) - std::max(keys_[k].u, keys_[k].b);
        if (tree_.risen[column] + more >= cap[column] * (1 - kApart)) return false;
    }
    for (size_t k = 0; k < keys.size(); ++k) {
        keys[k].x = std::max(keys[k].u, keys[k].b);
        tree_.risen[keys[k].column] += keys[k].x - std::max(keys_[k].u, keys_[k].b);
    }
    return true;
}

}  // namespace berth::share
