#include "share/tide.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace berth::share {
namespace {

constexpr double kExact = 9e15;  // sums of whole amounts up to here are doubles
constexpr double kApart = 1e-9;  // of a capacity, or a level: what is nearer is not told apart
constexpr double kSame = 1e-13;  // of a level: no part of a pod is another for that

}  // namespace

// ---- the way of a leaf

// tau = min over its keys of start + rise l, where l is its weight times a level.
struct Tide::Way {
    Way(const Tree& tree, const Node& leaf) : weight(leaf.weight) {
        const bool surplus = tree.problem.policy == Policy::Surplus;
        double lowest = kInfinity, rise = 0;
        for (const Key& key : tree.keys_of(leaf)) {
            if (key.u <= 0) {
                still = 0;
                return;
            }
            passes.push_back(key.b / key.u);
            lines.push_back({surplus ? passes.back() : 0, tree.pool[key.column] / key.u});
            const Line& line = lines.back();
            if (line.rise == kInfinity) continue;
            if (line.at > lowest || (line.at == lowest && line.rise >= rise)) continue;
            lowest = line.at;
            rise = line.rise;
        }
        if (lowest >= 1 || weight <= 0 || rise <= 0) still = std::min(1.0, lowest);
    }
    // Returns the key that counts there.
    uint32_t key_at(double l) const {
        uint32_t key = 0;
        double lowest = kInfinity;
        for (uint32_t k = 0; k < lines.size(); ++k) {
            if (lines[k].rise == kInfinity || lines[k].at + lines[k].rise * l >= lowest) continue;
            lowest = lines[k].at + lines[k].rise * l;
            key = k;
        }
        return key;
    }
    double at(double l) const {
        const Line& line = lines[key_at(l)];
        return line.at + line.rise * l;
    }
    // Where it has come so far.
    double reach(double tau) const {
        double l = 0;
        for (const Line& line : lines) {
            if (line.rise < kInfinity && tau > line.at) l = std::max(l, (tau - line.at) / line.rise);
        }
        return l;
    }

    absl::InlinedVector<Line, 4> lines;
    absl::InlinedVector<double, 4> passes;  // where it passes the guarantee of each key
    double weight;
    double still = -1;  // where it stands whatever the levels are; -1: it moves
};

// It is stopped by the first column that is full when it is past its guarantee of it. Where its guarantee ends only
// later, it waits there, until the level comes by.
Tide::Course Tide::course_of(const Node& leaf) const {
    Course course;
    const Way way(tree_, leaf);
    course.tau.at = way.still;
    if (way.still >= 0) return course;
    double tau = 1;
    uint32_t stop = kNoIndex;
    for (uint32_t k = 0; k < way.lines.size(); ++k) {
        const uint32_t column = column_[leaf.keys_begin + k];
        if (!is_full(column)) continue;
        const double here = std::max(way.at(way.weight * level_[column]), way.passes[k]);
        if (here >= tau) continue;
        tau = here;
        stop = k;
    }
    if (stop != kNoIndex) {
        course.by = column_[leaf.keys_begin + stop];
        if (way.at(way.weight * level_[course.by]) >= way.passes[stop]) {
            live(way, leaf.keys_begin, course);
            return course;
        }
    }
    course.tau.at = tau;
    const double reached = way.reach(tau) / way.weight;
    uint32_t first = kNoIndex;  // what would stop it sooner if it fell
    for (uint32_t k = 0; k < way.lines.size(); ++k) {
        const uint32_t column = column_[leaf.keys_begin + k];
        if (!is_full(column) || k == stop || way.passes[k] > tau || way.passes[k] >= 1) continue;
        if (way.at(way.weight * level_[column]) < tau) continue;
        if (first == kNoIndex || level_[column] < level_[first]) first = column;
    }
    if (first != kNoIndex) course.others.push_back({first, {reached, kInfinity}});
    if (stop != kNoIndex) course.others.push_back({course.by, {-kInfinity, reached}});
    course.by = kNoIndex;
    return course;
}

// It moves with the level that stops it, until it has all, another key counts or a guarantee ends.
void Tide::live(const Way& way, uint32_t first_key, Course& course) const {
    const double l = way.weight * level_[course.by];
    const Line line = way.lines[way.key_at(l)];
    const double tau = line.at + line.rise * l;
    double low = -kInfinity, high = (1 - line.at) / line.rise;
    for (uint32_t k = 0; k < way.lines.size(); ++k) {
        const double bend = (way.passes[k] - line.at) / line.rise;
        const uint32_t column = column_[first_key + k];
        const bool earlier = is_full(column) && level_[column] < level_[course.by];
        way.passes[k] <= tau&& !earlier ? low = std::max(low, bend) : high = std::min(high, bend);
        const Line& other = way.lines[k];
        if (other.rise == kInfinity || other.rise == line.rise) continue;
        const double crossing = (other.at - line.at) / (line.rise - other.rise);
        other.rise < line.rise ? high = std::min(high, crossing) : low = std::max(low, crossing);
    }
    course.tau = {line.at, line.rise * way.weight};
    course.bounds = {low / way.weight, high / way.weight};
}

// ---- levels

std::unique_ptr<Tide> Tide::of(Tree& tree, const Whole& whole) {
    const auto any = [](const std::vector<uint8_t>& flags) {
        return std::any_of(flags.begin(), flags.end(), [](uint8_t flag) { return flag != 0; });
    };
    if (tree.inners.size() > 1 || whole.tight || any(tree.shrunk)) return nullptr;
    std::unique_ptr<Tide> tide(new Tide(tree, whole));
    const auto& order = tide->order_;
    for (size_t i = 0; i < order.size(); ++i) {
        const double before = i == 0 ? 0 : tide->level_[order[i - 1]];
        if (tide->level_[order[i]] <= before * (1 + kApart)) return nullptr;
    }
    for (uint32_t column = 0; column < tide->m_; ++column) {
        if (tree.full[column] != 0 && !tide->is_full(column)) return nullptr;
        if (tree.inners.front().u[column] > kExact) return nullptr;
    }
    for (NodeId id = 1; id < tree.nodes.size(); ++id) {
        if (tree.nodes[id].leaf != kNoIndex && !tide->stand(id)) return nullptr;
    }
    return tide->settle() ? std::move(tide) : nullptr;
}

Tide::Tide(Tree& tree, const Whole& whole)
    : tree_(tree), m_(tree.columns.size()), level_(tree.closed_at), stands_(tree.nodes.size()) {
    lines_.resize(tree.keys.size());
    for (auto* amounts : {&taken_, &least_, &needs_}) amounts->assign(tree.keys.size(), 0);
    for (const Key& key : tree.keys) column_.push_back(key.column);
    for (NodeId id = 0; id < stands_.size(); ++id) {
        stands_[id].keys_begin = tree.nodes[id].keys_begin;
        stands_[id].keys_end = tree.nodes[id].keys_end;
    }
    guaranteed_.resize(m_);
    points_.resize(m_);
    slopes_.resize(m_ * m_);
    watches_.resize(m_);
    whole_.assign(m_, 0);
    early_.assign(m_, 0);
    slack_.assign(m_, 0);
    late_.resize(m_ * 65);
    for (uint32_t column = 0; column < m_; ++column) {
        points_[column].add(tree.inners.front().fixed[column]);
        most_.push_back(std::max(whole.sums[column].least, whole.sums[column].most));
        if (is_full(column)) order_.push_back(column);
    }
    for (const Key& key : tree.keys) guaranteed_[key.column].add(key.b);
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return level_[a] < level_[b]; });
    for (size_t column = 0; column < m_; ++column) slack_[column] = most_[column] - whole.whole[column].sum;
    std::vector<Part> parts = whole.parts;
    for (const Part& part : parts) {  // divide() serves them
        const Need* need = whole.needs.data() + part.needs;
        for (uint32_t k = tree.nodes[part.node()].keys_begin; k < tree.nodes[part.node()].keys_end; ++k, ++need)
            needs_[k] = need->amount;
    }
    divide(parts);
    std::fill(needs_.begin(), needs_.end(), 0);
}

bool Tide::change(NodeId id) {
    Node& leaf = tree_.nodes[id];
    if (leaf.leaf == kNoIndex || !tree_.problem.consumers[leaf.consumer].lending_limit.empty()) return false;
    for (const Key& key : tree_.keys_of(leaf)) guaranteed_[key.column].add(-key.b);
    clip_leaf(tree_, leaf);
    const Inner& root = tree_.inners.front();
    for (const Key& key : tree_.keys_of(leaf)) {
        guaranteed_[key.column].add(key.b);
        if (key.u <= 0 || root.u[key.column] + key.u > kExact) return false;
        if (guaranteed_[key.column].value() > root.cap[key.column] - root.fixed[key.column]) return false;
    }
    const Parts before = parts_of(id);
    if (!stand(id)) return false;
    same_ = same_ && parts_of(id) == before;
    return true;
}

bool Tide::stand(NodeId id) {
    const Node& leaf = tree_.nodes[id];
    Course course = course_of(leaf);
    if (waits_for_rest(leaf, course)) return false;
    set_lines(id, course);
    if (!count_pods(id, course)) return false;
    watch(id, course);
    return true;
}

// What rule 3 gives it of a column that is not full may be whole pods.
bool Tide::waits_for_rest(const Node& leaf, const Course& course) const {
    if (!tree_.problem.spread || leaf.weight <= 0) return false;
    if (course.by == kNoIndex && course.tau.at >= 1) return false;
    bool all_full = true;
    for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) all_full = all_full && is_full(column_[k]);
    return !all_full && !tree_.plain(leaf);
}

void Tide::set_lines(NodeId id, const Course& course) {
    const Node& leaf = tree_.nodes[id];
    Stand& stand = stands_[id];
    const double tau = course.tau.at + (course.by == kNoIndex ? 0 : course.tau.rise * level_[course.by]);
    for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) {
        const Key& key = tree_.keys[k];
        // What is stopped by a later column has not passed its guarantee of an earlier one, or just meets it.
        const bool earlier = course.by != kNoIndex && is_full(key.column) && level_[key.column] < level_[course.by];
        const bool passed = key.u > 0 && !earlier && tau >= key.b / key.u;
        const Line next = passed ? Line{course.tau.at * key.u, course.tau.rise * key.u} : Line{key.b, 0};
        Line& line = lines_[k];
        if (line.at == next.at && line.rise == next.rise && stand.by == course.by) continue;
        points_[key.column].add(-line.at);
        points_[key.column].add(next.at);
        if (line.rise > 0) {
            Slope& slope = slopes_[key.column * m_ + stand.by];
            slope.sum.add(-line.rise);
            --slope.growers;
        }
        if (next.rise > 0) {
            Slope& slope = slopes_[key.column * m_ + course.by];
            slope.sum.add(next.rise);
            ++slope.growers;
        }
        line = next;
    }
    stand.by = course.by;
    stand.tau = course.tau;
}

void Tide::watch(NodeId id, const Course& course) {
    Stand& stand = stands_[id];
    auto wanted = course.others;
    if (course.by != kNoIndex) wanted.push_back({course.by, course.bounds});
    for (size_t i = 0; i < 2; ++i) {
        const uint32_t column = i < wanted.size() ? wanted[i].first : kNoIndex;
        if (stand.watch[i] != kNoIndex && stand.watch[i] != column) {
            const uint32_t slot = stand.slot[i];
            if (const NodeId moved = watches_[stand.watch[i]].drop(slot); moved != kRoot) {
                Stand& other = stands_[moved];
                other.slot[other.watch[0] == stand.watch[i] ? 0 : 1] = slot;
            }
            stand.watch[i] = kNoIndex;
        }
        if (column == kNoIndex) continue;
        const Watch::Bounds bounds{std::min(wanted[i].second.low, level_[column]),
                                   std::max(wanted[i].second.high, level_[column])};
        if (stand.watch[i] == column) {
            watches_[column].set(stand.slot[i], bounds);
        } else {
            stand.watch[i] = column;
            stand.slot[i] = watches_[column].put(id, bounds);
        }
    }
}

bool Tide::settle() {
    int swaps = 0;
    for (size_t place = 0; place < order_.size();) {
        const Found found = find_level(place);
        if (found == Found::Level) {
            ++place;
            continue;
        }
        constexpr int kSwaps = 8;
        if (found == Found::None || ++swaps > kSwaps) return false;
        if (found == Found::Earlier) --place;
        if (!swap(place)) return false;
    }
    const Inner& root = tree_.inners.front();
    for (uint32_t column = 0; column < m_; ++column) {
        if (whole_[column] > most_[column]) return false;
        if (!is_full(column) && risen(column) >= root.cap[column] * (1 - 2 * kApart)) return false;
    }
    const auto stays = [&](uint32_t column) {
        return std::abs(level_[column] - served_at_[column]) <= kSame * level_[column];
    };
    served_ = served_ && same_ && std::all_of(order_.begin(), order_.end(), stays);
    return true;
}

// Two levels have passed each other: who needs both columns is stopped by the other one.
bool Tide::swap(size_t place) {
    std::swap(order_[place], order_[place + 1]);
    const auto& some = tree_.users[order_[place]];
    const auto& others = tree_.users[order_[place + 1]];
    const bool fewer = some.size() < others.size();
    const uint32_t column = order_[fewer ? place + 1 : place];
    for (const NodeId id : fewer ? some : others) {
        const auto first = column_.begin() + tree_.nodes[id].keys_begin,
                   last = column_.begin() + tree_.nodes[id].keys_end;
        if (std::find(first, last, column) != last && !stand(id)) return false;
    }
    return true;
}

double Tide::risen(uint32_t column) const {
    double sum = points_[column].value();
    for (const uint32_t by : order_) {
        const Slope& slope = slopes_[column * m_ + by];
        if (slope.growers > 0) sum += slope.sum.value() * level_[by];
    }
    return sum;
}

// A level that passes two others passes one after the other: whoever is looked at meanwhile finds the levels in their
// order. Else a leaf could come to be stopped by a column whose level, when it is found, is not its lowest.
double Tide::within(double low, double level, double high) {
    return level > low && level < high ? level : (low + high) / 2;
}

// The level at which the column's own line meets the capacity: those that stop at levels below have been found.
Tide::Found Tide::find_level(size_t place) {
    constexpr int kTries = 16;
    const uint32_t column = order_[place];
    const double below = place == 0 ? 0 : level_[order_[place - 1]];
    const double above = place + 1 == order_.size() ? kInfinity : level_[order_[place + 1]];
    for (int i = 0; i < kTries; ++i) {
        const Slope& own = slopes_[column * m_ + column];
        if (own.growers == 0) return Found::None;
        double rest = tree_.inners.front().cap[column] - points_[column].value();
        for (size_t before = 0; before < place; ++before) {
            const Slope& slope = slopes_[column * m_ + order_[before]];
            if (slope.growers > 0) rest -= slope.sum.value() * level_[order_[before]];
        }
        const double level = rest / own.sum.value();
        if (!(level > 0) || std::abs(level - below) <= kApart * below) return Found::None;
        if (level < below) {
            level_[column] = within(place < 2 ? 0 : level_[order_[place - 2]], level, below);
            return Found::Earlier;
        }
        if (level >= above) {
            if (level <= above * (1 + kApart)) return Found::None;
            level_[column] = within(above, level, place + 2 < order_.size() ? level_[order_[place + 2]] : kInfinity);
            return Found::Later;
        }
        level_[column] = level;
        passed_.clear();
        watches_[column].beyond(level, passed_);
        if (passed_.empty()) return Found::Level;
        for (const NodeId id : passed_) {
            if (!stand(id)) return Found::None;
        }
    }
    return Found::None;
}

// ---- what is told

void Tide::tell(NodeId id, Share& share) {
    const Node& leaf = tree_.nodes[id];
    share.pods.resize(tree_.problem.consumers[leaf.consumer].leaves.size());
    if (leaf.leaf == kNoIndex) return;
    const bool given = is_given(id);
    const Stand& stand = stands_[id];
    share.pods[leaf.leaf] = stand.pods + (given ? 1 : 0);
    const int64_t* size = given ? tree_.sizes.data() + tree_.runs[stand.run].sizes : nullptr;
    for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) {
        const int64_t taken = taken_[k] + (given ? size[k - leaf.keys_begin] : 0);
        share.deserved.set(tree_.columns[column_[k]], std::max(taken, least_[k]));
    }
}

void Tide::lay(Whole& whole) {
    for (NodeId id = 1; id < tree_.nodes.size(); ++id) {
        const Node& leaf = tree_.nodes[id];
        if (leaf.leaf == kNoIndex) continue;
        const bool given = is_given(id);
        const Stand& stand = stands_[id];
        tree_.tau[id] = std::min(1.0, stand.tau.at + (stand.by == kNoIndex ? 0 : stand.tau.rise * level_[stand.by]));
        whole.pods[id] = stand.pods + (given ? 1 : 0);
        const int64_t* size = given ? tree_.sizes.data() + tree_.runs[stand.run].sizes : nullptr;
        for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) {
            whole.taken[k] = taken_[k] + (given ? size[k - leaf.keys_begin] : 0);
            whole.least[k] = least_[k];
        }
    }
    for (uint32_t column = 0; column < m_; ++column) tree_.risen[column] = risen(column);
}

}  // namespace berth::share
