#include <algorithm>
#include <cmath>

#include "base/saturating.h"
#include "share/digits.h"
#include "share/tree.h"

// Rule 4. A leaf deserves as many of its pods, in the order in which they are kept, as its share covers; the fractions
// that are left go to the largest remainders, those that already run first. Every step is checked in exact integers
// against the cluster and every limit on the way up, so what is published never adds up to more.
namespace berth::share {
namespace {

constexpr double kWhole = 1e-9;            // a remainder this near to a whole pod is one
constexpr int64_t kParts = 1'000'000'000;  // in a pod

// A pod of which the share covers a part.
struct Part {
    uint64_t rank = 0;  // those that run first, then by the largest remainder, then by name
    uint32_t run = 0;
    uint32_t needs = 0;  // of one of the root's leaves: its first need
    NodeId node() const { return static_cast<NodeId>(rank); }
    static uint64_t rank_of(bool present, int64_t remainder, NodeId node) {
        const auto missing = static_cast<uint64_t>(kParts - remainder);
        return (present ? 0 : uint64_t{1} << 63) | missing << 32 | node;
    }
};

int64_t floor_of(double amount) {
    if (amount <= 0) return 0;
    return amount >= 9.2e18 ? INT64_MAX : static_cast<int64_t>(amount);
}

// What one more pod takes of what the root's leaves share.
struct Need {
    uint32_t column = 0;
    bool last = false;  // of its pod
    int64_t amount = 0;
};

// Of a guarantee that was shrunk so much less, so that rounding does not add to it. `whole`: what it was before.
constexpr double kSlack = 1e-12;

int64_t least_of(double guaranteed, double whole, double not_lent = 0) {
    return floor_of((guaranteed < whole ? guaranteed * (1 - kSlack) : guaranteed) - not_lent);
}

class Rounding {
public:
    Rounding(const Tree& tree, Whole& whole) : tree_(tree), whole_(whole), m_(tree.columns.size()) {
        whole_.taken.assign(tree.keys.size(), 0);
        whole_.pods.assign(tree.nodes.size(), 0);
        whole_.sums.assign(tree.inners.size() * m_, {});
        nodes_ = tree.nodes.data();
        keys_ = tree.keys.data();
        taken_ = whole_.taken.data();
        sums_ = whole_.sums.data();
        parts_.reserve(tree.nodes.size());
        stated_ = tree.stated.data();
        whole_.least.resize(tree.keys.size());
        least_ = whole_.least.data();
        set_limits();
        begin();
    }

    void run() {
        for (NodeId id = 1; id < tree_.nodes.size(); ++id) {
            if (nodes_[id].leaf != kNoIndex) round_down(id);
        }
        // They come in the order of their nodes.
        std::vector<Part> other;
        sort_by_digits(parts_, other, 32, [](const Part& part) { return part.rank; });
        for (const Part& part : parts_) {
            if (nodes_[part.node()].parent == kRoot) {
                if (fits_at_root(part)) give(part);
                continue;
            }
            const int64_t* size = tree_.sizes.data() + tree_.runs[part.run].sizes;
            if (short_of_share(part.node(), size) && take(part.node(), size, 1)) ++whole_.pods[part.node()];
        }
    }

private:
    void set_limits() {
        for (const Node& node : tree_.nodes) {
            if (node.inner == kNoIndex) continue;
            Whole::Sum* sums = sums_ + node.inner * m_;
            const Inner& inner = tree_.inner_of(node);
            for (size_t r = 0; r < m_; ++r) {
                if (node.consumer != kNoIndex) {
                    const double whole = std::min(inner.reserved[r], inner.u[r] + inner.fixed[r]);
                    sums[r].least = least_of(inner.b[r], whole, inner.fixed[r]);
                    if (node.limited) sums[r].most = limit_of(tree_.problem.consumers[node.consumer], tree_.columns[r]);
                } else if (tree_.left[r] < INT64_MAX) {
                    sums[r].most = tree_.left[r] - static_cast<int64_t>(std::ceil(inner.fixed[r]));
                }
            }
        }
    }

    // Everybody has its guarantee.
    void begin() {
        for (auto id = static_cast<NodeId>(tree_.nodes.size()); id-- > 1;) {
            const Node& node = nodes_[id];
            Whole::Sum* parent = sums_ + nodes_[node.parent].inner * m_;
            if (node.inner == kNoIndex) {
                for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
                    const int64_t stated = std::min(stated_[k].reserved, stated_[k].demand);
                    least_[k] = least_of(keys_[k].b, static_cast<double>(stated));
                    parent[keys_[k].column].sum += least_[k];
                }
            } else {
                const Whole::Sum* own = sums_ + node.inner * m_;
                for (size_t r = 0; r < m_; ++r) parent[r].sum += std::max(own[r].sum, own[r].least);
            }
        }
    }

    // Takes so many pods of this size for a leaf, if everybody above has room for them.
    bool take(NodeId id, const int64_t* size, int64_t count) {
        const Node& node = nodes_[id];
        if (node.parent == kRoot) return take_at_root(node, size, count);
        for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
            const int64_t more = size[k - node.keys_begin] * count;
            if (more > 0 && !has_room(node, k, more)) return false;
        }
        for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
            if (const int64_t more = size[k - node.keys_begin] * count; more > 0) add(node, k, more);
        }
        return true;
    }

    // The same where nothing but the cluster is above.
    bool take_at_root(const Node& node, const int64_t* size, int64_t count) {
        const auto counts = [&](uint32_t k, int64_t next) {
            return std::max(next, least_[k]) - std::max(taken_[k], least_[k]);
        };
        for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
            const int64_t next = taken_[k] + size[k - node.keys_begin] * count;
            const int64_t by = counts(k, next);
            const Whole::Sum& at = sums_[keys_[k].column];
            if (by > 0 && (next > stated_[k].limit || at.sum + by > std::max(at.least, at.most))) return false;
        }
        for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
            const int64_t next = taken_[k] + size[k - node.keys_begin] * count;
            sums_[keys_[k].column].sum += counts(k, next);
            taken_[k] = next;
        }
        return true;
    }

    // What a leaf takes counts where it is more than the guarantee; and so on the way up.
    bool has_room(const Node& node, uint32_t k, int64_t more) const {
        const Key& key = keys_[k];
        const int64_t least = least_[k];
        int64_t by = std::max(taken_[k] + more, least) - std::max(taken_[k], least);
        if (by > 0 && taken_[k] + more > stated_[k].limit) return false;
        for (NodeId up = node.parent; by > 0; up = nodes_[up].parent) {
            const Whole::Sum& at = sums_[nodes_[up].inner * m_ + key.column];
            if (at.sum + by > std::max(at.least, at.most)) return false;
            by = std::max(at.sum + by, at.least) - std::max(at.sum, at.least);
            if (up == kRoot) break;
        }
        return true;
    }
    void add(const Node& node, uint32_t k, int64_t more) {
        const Key& key = keys_[k];
        const int64_t least = least_[k];
        int64_t by = std::max(taken_[k] + more, least) - std::max(taken_[k], least);
        taken_[k] += more;
        for (NodeId up = node.parent; by > 0; up = nodes_[up].parent) {
            Whole::Sum& at = sums_[nodes_[up].inner * m_ + key.column];
            const int64_t next = std::max(at.sum + by, at.least) - std::max(at.sum, at.least);
            at.sum += by;
            by = next;
            if (up == kRoot) break;
        }
    }

    // The pods that the share covers whole; what it covers of the next one is a part.
    void round_down(NodeId id) {
        const Node& node = nodes_[id];
        for (uint32_t i = node.runs_begin; i < node.runs_end; ++i) {
            const Run& run = tree_.runs[i];
            const int64_t* size = tree_.sizes.data() + run.sizes;
            const double covered = covered_of(node, size);
            const double most = std::min(covered + kWhole, static_cast<double>(run.count));
            auto whole = static_cast<int64_t>(most);  // not negative
            if (whole > 0 && !take(id, size, whole)) {
                --whole;
                if (whole > 0 && !take(id, size, whole)) whole = 0;
            }
            whole_.pods[id] += whole;
            if (whole == run.count) continue;
            const double rest = std::min(1.0, covered - static_cast<double>(whole));
            if (rest > kWhole) add_part(id, i, whole < run.present, rest);
            return;
        }
        split_rest(node);
    }

    // What a pod of the root's leaves needs is noted beside it, since there may be very many.
    void add_part(NodeId id, uint32_t run, bool present, double rest) {
        const Node& node = nodes_[id];
        const auto first = static_cast<uint32_t>(needs_.size());
        const int64_t* size = tree_.sizes.data() + tree_.runs[run].sizes;
        for (uint32_t k = node.keys_begin; node.parent == kRoot && k < node.keys_end; ++k) {
            const int64_t next = taken_[k] + size[k - node.keys_begin];
            const int64_t by = std::max(next, least_[k]) - std::max(taken_[k], least_[k]);
            if (by > 0 && next > stated_[k].limit) return needs_.resize(first);
            needs_.push_back({keys_[k].column, k + 1 == node.keys_end, by});
        }
        parts_.push_back({Part::rank_of(present, std::llround(rest / kWhole), id), run, first});
    }
    bool fits_at_root(const Part& part) const {
        for (const Need* need = needs_.data() + part.needs;; ++need) {
            const Whole::Sum& at = sums_[need->column];
            if (need->amount > 0 && at.sum + need->amount > std::max(at.least, at.most)) return false;
            if (need->last) return true;
        }
    }
    void give(const Part& part) {
        for (const Need* need = needs_.data() + part.needs;; ++need) {
            sums_[need->column].sum += need->amount;
            if (need->last) break;
        }
        const Node& node = nodes_[part.node()];
        const int64_t* size = tree_.sizes.data() + tree_.runs[part.run].sizes;
        for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) taken_[k] += size[k - node.keys_begin];
        ++whole_.pods[part.node()];
    }

    // Of the pods' size, how often it goes into what is left of the leaf's share.
    double covered_of(const Node& node, const int64_t* size) const {
        double covered = kInfinity;
        for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
            const int64_t each = size[k - node.keys_begin];
            if (each <= 0) continue;
            const double left = keys_[k].x - static_cast<double>(taken_[k]);
            covered = std::min(covered, std::max(0.0, left) / static_cast<double>(each));
        }
        return covered;
    }

    // What is asked for beyond pods can be split anywhere.
    void split_rest(const Node& node) {
        for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
            const Key& key = keys_[k];
            if (taken_[k] >= stated_[k].demand) continue;
            const double share = key.x * (1 + 1e-13) + 1e-6;
            const int64_t more = std::min(floor_of(share), stated_[k].demand) - taken_[k];
            if (more <= 0) continue;
            if (const int64_t fits = std::min(more, room_of(node, k)); fits > 0 && has_room(node, k, fits))
                add(node, k, fits);
        }
    }

    // How much more of a key can be taken: above it everybody has this much.
    int64_t room_of(const Node& node, uint32_t k) const {
        const Key& key = keys_[k];
        int64_t above = INT64_MAX;
        for (NodeId up = node.parent;; up = nodes_[up].parent) {
            const Whole::Sum& at = sums_[nodes_[up].inner * m_ + key.column];
            above = std::min(above, std::max(at.least, at.most) - at.sum);
            if (up == kRoot) break;
        }
        const int64_t guaranteed = std::max<int64_t>(0, least_[k] - taken_[k]);
        const int64_t room = base::saturating_add(std::max<int64_t>(0, above), guaranteed);
        return std::min(room, std::max(base::saturating_subtract(stated_[k].limit, taken_[k]), guaranteed));
    }

    // Whether every area above it has less than its own share of what the pod needs.
    bool short_of_share(NodeId id, const int64_t* size) const {
        const Node& node = nodes_[id];
        for (NodeId up = node.parent; up != kRoot; up = nodes_[up].parent) {
            const Inner& inner = tree_.inners[nodes_[up].inner];
            for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
                if (size[k - node.keys_begin] <= 0) continue;
                const uint32_t r = keys_[k].column;
                const double share = inner.x[r] - inner.fixed[r];
                if (static_cast<double>(sums_[nodes_[up].inner * m_ + r].sum) >= share * (1 - kWhole)) return false;
            }
        }
        return true;
    }

    const Tree& tree_;
    Whole& whole_;
    size_t m_;
    const Node* nodes_;
    const Key* keys_;
    const Stated* stated_ = nullptr;
    int64_t* taken_;
    int64_t* least_ = nullptr;
    Whole::Sum* sums_;
    std::vector<Part> parts_;
    std::vector<Need> needs_;
};

}  // namespace

void round_to_pods(const Tree& tree, Whole& whole) {
    Rounding(tree, whole).run();
}

void tell_whole(const Tree& tree, const Whole& whole, NodeId id, Share& share) {
    const Node& node = tree.nodes[id];
    share.pods.resize(tree.problem.consumers[node.consumer].leaves.size());
    if (node.leaf != kNoIndex) share.pods[node.leaf] = whole.pods[id];
    for (NodeId c = node.children_begin; c < node.children_end; ++c) {
        if (tree.nodes[c].consumer == node.consumer) share.pods[tree.nodes[c].leaf] = whole.pods[c];
    }
    if (node.inner == kNoIndex) {
        const auto keys = tree.keys_of(node);
        for (size_t k = 0; k < keys.size(); ++k)
            share.deserved.set(tree.columns[keys[k].column],
                               std::max(whole.taken[node.keys_begin + k], whole.least[node.keys_begin + k]));
        return;
    }
    const size_t m = tree.columns.size();
    for (size_t r = 0; r < m; ++r) {
        const Whole::Sum& sums = whole.sums[node.inner * m + r];
        const int64_t deserved = std::max(sums.sum, sums.least);
        if (deserved > 0 || tree.inner_of(node).u[r] > 0) share.deserved.set(tree.columns[r], deserved);
    }
}

}  // namespace berth::share
