#include <algorithm>
#include <cmath>

#include "base/saturating.h"
#include "share/digits.h"
#include "share/rounding.h"

namespace berth::share {
namespace {

constexpr double kWhole = 1e-9;            // a remainder this near to a whole pod is one
constexpr int64_t kParts = 1'000'000'000;  // in a pod

int64_t floor_of(double amount) {
    if (amount <= 0) return 0;
    return amount >= 9.2e18 ? INT64_MAX : static_cast<int64_t>(amount);
}

// Of a guarantee that was shrunk so much more, since rounding may have made it less than it is: sums are counted in
// integers. `whole`: what it was before.
constexpr double kSlack = 1e-12;

int64_t least_of(double guaranteed, double whole, double not_lent = 0) {
    return floor_of((guaranteed < whole ? guaranteed * (1 + kSlack) : guaranteed) - not_lent);
}

int64_t times(int64_t size, int64_t count) {
    int64_t all = 0;
    return __builtin_mul_overflow(size, count, &all) ? INT64_MAX : all;
}

}  // namespace

uint64_t Part::rank_of(bool present, int64_t remainder, NodeId node) {
    const auto missing = static_cast<uint64_t>(kParts - remainder);
    return (present ? 0 : uint64_t{1} << 63) | missing << 32 | node;
}

Rounding::Rounding(const Tree& tree, Whole& whole)
    : tree_(tree),
      whole_(whole),
      m_(tree.columns.size()),
      nodes_(tree.nodes.data()),
      keys_(tree.keys.data()),
      stated_(tree.stated.data()),
      taken_(whole.taken.data()),
      least_(whole.least.data()),
      sums_(whole.sums.data()) {}

void Rounding::run() {
    begin();
    for (NodeId id = 1; id < tree_.nodes.size(); ++id) {
        if (nodes_[id].leaf == kNoIndex) continue;
        if (const Part part = round_down(id); part.rank != 0) whole_.parts.push_back(part);
    }
    whole_.whole.assign(sums_, sums_ + m_);
    // They come in the order of their nodes.
    std::vector<Part> other;
    sort_by_digits(whole_.parts, other, 32, [](const Part& part) { return part.rank; });
    whole_.uses.clear();
    for (const Part& part : whole_.parts) {
        whole_.uses.push_back(serve(part));
    }
}

void Rounding::begin() {
    const size_t nodes = tree_.nodes.size();
    whole_.taken.assign(tree_.keys.size(), 0);
    whole_.least.resize(tree_.keys.size());
    whole_.pods.assign(nodes, 0);
    whole_.sums.assign(tree_.inners.size() * m_, {});
    whole_.parts.clear();
    whole_.parts.reserve(nodes);
    whole_.uses.reserve(nodes);
    whole_.needs.clear();
    whole_.rank.assign(nodes, 0);
    whole_.need.assign(nodes, kNoIndex);
    whole_.given.assign(nodes, 0);
    whole_.columns.assign(m_, {});
    whole_.tight = false;
    taken_ = whole_.taken.data();
    least_ = whole_.least.data();
    sums_ = whole_.sums.data();
    set_limits();
    hand_out_guarantees();
}

void Rounding::set_limits() {
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
                sums[r].most = tree_.left[r] - floor_of(std::ceil(inner.fixed[r]));
            }
        }
    }
}

int64_t Rounding::guarantee_of(uint32_t k) const {
    return least_of(keys_[k].b, static_cast<double>(std::min(stated_[k].reserved, stated_[k].demand)));
}

// Everybody has its guarantee. They fit, but for what doubles do not tell apart; that much is counted off here.
void Rounding::hand_out_guarantees() {
    for (NodeId id = 1; id < tree_.nodes.size(); ++id) {  // parents first
        const Node& node = nodes_[id];
        Whole::Sum* parent = sums_ + nodes_[node.parent].inner * m_;
        const auto hand_out = [&](Whole::Sum& from, int64_t& least) {
            least = std::max<int64_t>(0, std::min(least, (node.parent == kRoot ? from.most : from.least) - from.sum));
            from.sum += least;
        };
        for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
            least_[k] = guarantee_of(k);
            hand_out(parent[keys_[k].column], least_[k]);
        }
        if (node.inner == kNoIndex) continue;
        for (size_t r = 0; r < m_; ++r) hand_out(parent[r], sums_[node.inner * m_ + r].least);
    }
}

// Takes so many pods of this size for a leaf, if everybody above has room for them.
bool Rounding::take(NodeId id, const int64_t* size, int64_t count) {
    const Node& node = nodes_[id];
    if (node.parent == kRoot) return take_at_root(node, size, count);
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
        const int64_t more = times(size[k - node.keys_begin], count);
        if (more > 0 && !has_room(node, k, more)) return false;
    }
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
        if (const int64_t more = times(size[k - node.keys_begin], count); more > 0) add(node, k, more);
    }
    return true;
}

// The same where nothing but the cluster is above.
bool Rounding::take_at_root(const Node& node, const int64_t* size, int64_t count) {
    const auto counts = [&](uint32_t k, int64_t next) {
        return std::max(next, least_[k]) - std::max(taken_[k], least_[k]);
    };
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
        const int64_t next = base::saturating_add(taken_[k], times(size[k - node.keys_begin], count));
        const int64_t by = counts(k, next);
        const Whole::Sum& at = sums_[keys_[k].column];
        if (by > 0 && (next > stated_[k].limit || by > std::max(at.least, at.most) - at.sum)) return false;
    }
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
        const int64_t next = base::saturating_add(taken_[k], times(size[k - node.keys_begin], count));
        sums_[keys_[k].column].sum += counts(k, next);
        taken_[k] = next;
    }
    return true;
}

// What a leaf takes counts where it is more than the guarantee; and so on the way up.
bool Rounding::has_room(const Node& node, uint32_t k, int64_t more) const {
    const Key& key = keys_[k];
    const int64_t least = least_[k];
    const int64_t then = base::saturating_add(taken_[k], more);
    int64_t by = std::max(then, least) - std::max(taken_[k], least);
    if (by > 0 && then > stated_[k].limit) return false;
    for (NodeId up = node.parent; by > 0; up = nodes_[up].parent) {
        const Whole::Sum& at = sums_[nodes_[up].inner * m_ + key.column];
        if (by > std::max(at.least, at.most) - at.sum) return false;
        by = std::max(at.sum + by, at.least) - std::max(at.sum, at.least);
        if (up == kRoot) break;
    }
    return true;
}
void Rounding::add(const Node& node, uint32_t k, int64_t more) {
    const Key& key = keys_[k];
    const int64_t least = least_[k];
    const int64_t then = base::saturating_add(taken_[k], more);
    int64_t by = std::max(then, least) - std::max(taken_[k], least);
    taken_[k] = then;
    for (NodeId up = node.parent; by > 0; up = nodes_[up].parent) {
        Whole::Sum& at = sums_[nodes_[up].inner * m_ + key.column];
        const int64_t next = std::max(at.sum + by, at.least) - std::max(at.sum, at.least);
        at.sum += by;
        by = next;
        if (up == kRoot) break;
    }
}

// The pods that the share covers whole; what it covers of the next one is a part.
Part Rounding::round_down(NodeId id) {
    const Node& node = nodes_[id];
    for (uint32_t i = node.runs_begin; i < node.runs_end; ++i) {
        const Run& run = tree_.runs[i];
        const int64_t* size = tree_.sizes.data() + run.sizes;
        const double covered = covered_of(node, size);
        const double most = std::min(covered + kWhole, static_cast<double>(run.count));
        int64_t whole = std::min(floor_of(most), run.count);
        if (whole > 0 && !take(id, size, whole)) {
            whole_.tight = true;
            --whole;
            if (whole > 0 && !take(id, size, whole)) whole = 0;
        }
        whole_.pods[id] = base::saturating_add(whole_.pods[id], whole);
        if (whole == run.count) continue;
        const double rest = std::min(1.0, covered - static_cast<double>(whole));
        return rest > kWhole ? part_of(id, i, whole < run.present, rest) : Part{};
    }
    split_rest(node);
    return {};
}

// Of the pods' size, how often it goes into what is left of the leaf's share.
double Rounding::covered_of(const Node& node, const int64_t* size) const {
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
void Rounding::split_rest(const Node& node) {
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
        const Key& key = keys_[k];
        if (taken_[k] >= stated_[k].demand) continue;
        const double share = key.x * (1 + 1e-13) + 1e-6;
        const int64_t more = std::min(floor_of(share), stated_[k].demand) - taken_[k];
        if (more <= 0) continue;
        const int64_t fits = std::min(more, room_of(node, k));
        whole_.tight = whole_.tight || fits < more;
        if (fits > 0 && has_room(node, k, fits)) add(node, k, fits);
    }
}

// How much more of a key can be taken: above it everybody has this much.
int64_t Rounding::room_of(const Node& node, uint32_t k) const {
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
bool Rounding::short_of_share(NodeId id, const int64_t* size) const {
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

// ---- parts of pods

// What the root's children share of it is noted beside it, since there may be very many. None if the leaf's own limit
// keeps it from one more.
Part Rounding::part_of(NodeId id, uint32_t run, bool present, double rest) {
    const Node& node = nodes_[id];
    const Part part{Part::rank_of(present, std::llround(rest / kWhole), id), run,
                    whole_.need[id] == kNoIndex ? static_cast<uint32_t>(whole_.needs.size()) : whole_.need[id]};
    const int64_t* size = size_of(part);
    for (uint32_t k = node.keys_begin; node.parent == kRoot && k < node.keys_end; ++k) {
        const int64_t next = base::saturating_add(taken_[k], size[k - node.keys_begin]);
        if (next > std::max(taken_[k], least_[k]) && next > stated_[k].limit) return {};
    }
    if (whole_.need[id] == kNoIndex) whole_.needs.resize(whole_.needs.size() + node.keys_end - node.keys_begin);
    whole_.need[id] = part.needs;
    whole_.rank[id] = part.rank;
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
        Need& need = whole_.needs[part.needs + k - node.keys_begin];
        const int64_t next = base::saturating_add(taken_[k], size[k - node.keys_begin]);
        need = {keys_[k].column, k + 1 == node.keys_end, std::max(next, least_[k]) - std::max(taken_[k], least_[k]), 0};
    }
    return part;
}

uint64_t Rounding::uses_of(const Part& part) const {
    uint64_t uses = 0;
    for (const Need* need = whole_.needs.data() + part.needs;; ++need) {
        uses |= uint64_t{1} << (need->column % 64);
        if (need->last) return uses;
    }
}

// Returns the columns that it needs.
uint64_t Rounding::serve(const Part& part) {
    if (nodes_[part.node()].parent != kRoot) return serve_below(part);
    bool fits = true;
    uint64_t uses = 0;
    Need* const needs = whole_.needs.data() + part.needs;
    for (Need* need = needs;; ++need) {
        const Whole::Sum& at = sums_[need->column];
        Whole::Column& column = whole_.columns.data()[need->column];
        need->slack = std::max(at.least, at.most) - at.sum - need->amount;
        column.least_slack = std::min(column.least_slack, need->slack);
        fits = fits && (need->amount <= 0 || need->slack >= 0);
        uses |= uint64_t{1} << (need->column % 64);
        if (need->last) break;
    }
    if (!fits) return uses;
    give(part, 1);
    for (const Need* need = needs;; ++need) {
        sums_[need->column].sum += need->amount;
        if (need->last) return uses;
    }
}

// The leaf has it, or (-1) has it no more.
void Rounding::give(const Part& part, int64_t count) {
    const Node& node = nodes_[part.node()];
    const int64_t* size = size_of(part);
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k)
        taken_[k] = base::saturating_add(taken_[k], size[k - node.keys_begin] * count);
    whole_.pods[part.node()] = base::saturating_add(whole_.pods[part.node()], count);
    whole_.given[part.node()] = count > 0 ? 1 : 0;
}

// Of a leaf that is not the root's, what the root's sums see of it.
uint64_t Rounding::serve_below(const Part& part) {
    const NodeId id = part.node();
    Need* needs = whole_.needs.data() + part.needs;
    for (Need* need = needs;; ++need) {
        const Whole::Sum& at = sums_[need->column];
        need->slack = std::max(at.least, at.most) - at.sum;
        if (need->last) break;
    }
    const bool given = short_of_share(id, size_of(part)) && take(id, size_of(part), 1);
    if (given) ++whole_.pods[id];
    whole_.given[id] = given ? 1 : 0;
    for (Need* need = needs;; ++need) {
        const Whole::Sum& at = sums_[need->column];
        need->amount = need->slack - (std::max(at.least, at.most) - at.sum);
        need->slack -= need->amount;
        Whole::Column& column = whole_.columns[need->column];
        column.least_slack = std::min(column.least_slack, given ? need->slack : -1);
        if (need->last) return uses_of(part);
    }
}

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
