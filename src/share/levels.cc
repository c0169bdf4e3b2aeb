#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "share/digits.h"
#include "share/tree.h"

// Rule 2. A clock s runs at every inner node; a child of weight w stands at level l = w s.
//
// A leaf at level l has x = max(b, tau u) with tau = min(1, min over r of (b[r] + l S[r]) / u[r]): lines of which the
// lowest counts. Its pieces are straight, so the sums are, and the next moment at which anything bends is known: a
// leaf's lowest line changes, its direction passes a guarantee, it has all it asks for, or a resource is full.
//
// An inner node's level counts what it takes beyond its guarantee, in the resource that grows fastest: while X grows by
// B ds, its level grows by max over r of B[r] / S[r] ds. What grows below the guarantee is free. A resource that is
// full grows no more, so it leaves the shares, and a sibling's bottleneck stops nobody else.
//
// Worked: C = (9, 18), A asks (1, 4) each, B (3, 1): A's tau rises by 18/400 of its 100 pods a level, B's by 9/300; cpu
// is full when 4.5 l + 9 l = 9, so l = 2/3: A (3, 12), B (6, 2).
namespace berth::share {
namespace {

constexpr double kNear = 1e-13;  // clocks and amounts this near are the same

struct Moment {
    double at = 0;  // of the parent's clock
    NodeId node = 0;
    uint32_t version = 0;
};
struct Later {
    bool operator()(const Moment& a, const Moment& b) const { return a.at > b.at || (a.at == b.at && a.node > b.node); }
};

// Where a leaf stands on its way: tau = a + slope l.
struct Way {
    double a = 0, slope = 0;
    double tau = 0;     // when it stands still
    uint32_t line = 0;  // the key that counts
    bool moving = false;
};

// Of one key, as a part of the way: where it passes the guarantee, and how it rises with the level.
struct Line {
    double passes = 0, rise = 0;
};

struct Course {
    std::vector<double> slope;           // B: of its sums, by its own clock
    std::vector<uint32_t> growers;       // how many of its children grow in it; 0: the slope is 0, exactly
    std::vector<double> claimed;         // the slope that its parent sees
    std::vector<uint8_t> above;          // its sum has passed its guarantee
    std::vector<uint8_t> full, closing;  // no more for it; none beyond its guarantee
    std::vector<Moment> moments;         // of its children, a heap
    double clock = 0;
    double seen = 0;         // the parent's clock at that moment
    double pace = 0;         // of its clock, by the parent's
    double target = 0;       // its own clock at its next moment: the parent's may be too coarse to tell
    double waits_until = 0;  // a level: policy floor gives what the guarantee gave already
    uint32_t version = 0;
};

class Sweep {
public:
    explicit Sweep(Tree& tree) : tree_(tree), m_(tree.columns.size()), ways_(tree.nodes.size()) {
        courses_.resize(tree.inners.size());
        since_.assign(m_, 0);
        full_at_.assign(m_, kInfinity);
        is_stale_.assign(m_, 0);
        for (auto& course : courses_) {
            course.slope.assign(m_, 0);
            course.claimed.assign(m_, 0);
            course.growers.assign(m_, 0);
            for (auto* flags : {&course.above, &course.full, &course.closing}) flags->assign(m_, 0);
        }
        first_.reserve(tree.nodes.size());
    }

    void run() {
        held_ = held_starts(tree_);
        inner(kRoot).x = inner(kRoot).fixed;
        for (auto id = static_cast<NodeId>(tree_.nodes.size()); id-- > 0;) begin(id);
        for (size_t r = 0; r < m_; ++r) bring(r);
        std::reverse(first_.begin(), first_.end());
        std::vector<Moment> other;
        sort_by_digits(first_, other, 0, [](const Moment& moment) { return std::bit_cast<uint64_t>(moment.at); });
        begun_ = true;
        tree_.tau.resize(tree_.nodes.size());
        while (step_root()) {
        }
        for (NodeId id = 1; id < tree_.nodes.size(); ++id) finish(id);
        for (size_t r = 0; r < m_; ++r) bring(r);
        tree_.full = course(kRoot).full;
        tree_.risen = inner(kRoot).x;
        const Inner& root = inner(kRoot);
        for (size_t r = 0; r < m_; ++r) {
            if (root.x[r] >= root.cap[r] * (1 - 1e-9)) tree_.full[r] = 1;  // two may be full at one moment
        }
    }

private:
    bool surplus() const { return tree_.problem.policy == Policy::Surplus; }
    Node& node(NodeId id) { return tree_.nodes.data()[id]; }
    Inner& inner(NodeId id) { return tree_.inner_of(tree_.nodes[id]); }
    Course& course(NodeId id) { return courses_.data()[node(id).inner]; }
    // Where a leaf's direction passes the guarantee of a key, as a part of the way.
    static double passes(const Key& key) { return key.b / key.u; }
    // A key's line: where it starts, and how it rises with the level.
    double start_of(const Key& key) const { return surplus() ? passes(key) : 0; }
    double rise_of(const Key& key) const { return tree_.pool.data()[key.column] / key.u; }

    // --- leaves

    void begin_leaf(NodeId id);
    // Its next bend, as a level; kInfinity: none. `turn` carries out what happens there.
    template <class F>
    double next_bend(std::span<const Key> keys, const Way& way, F&& line_of) const;
    void turn(NodeId id, double level);
    void stop(NodeId id, double tau);
    // Whether what the leaf grows by is a part of its parent's slopes.
    void count(NodeId id, const Way& way, bool counts);
    void push_leaf(NodeId id, double level);

    // --- inner nodes

    void begin(NodeId id);
    void advance(NodeId id, double clock);
    void adjust(Course& of, size_t column, double before, double after);
    double next_own(NodeId id);
    // Everything that is due at its clock, then its pace, what its parent sees of it, and when it bends next.
    void catch_up(NodeId id);
    bool step_inside(NodeId id);
    void child_moment(NodeId parent, NodeId child);
    void saturate(NodeId top, size_t column);
    void stop_users(size_t column);
    // Its parent has no more of a column.
    void close(NodeId id, size_t column);
    bool closes_all_below(NodeId id, size_t column);
    void tell_parent(NodeId id, double fastest);
    void touch(NodeId id);
    bool step_root();
    void finish(NodeId id);
    // The root's sums are brought to its clock one by one, where their slope changes.
    void bring(size_t column);
    void foresee();

    Tree& tree_;
    size_t m_;
    std::vector<Way> ways_;
    std::vector<Course> courses_;
    std::vector<Line> lines_;    // of the leaf that begins
    size_t moving_ = 0;          // leaves
    std::vector<Moment> first_;  // of the root's leaves, the first moment of each, in order
    size_t next_first_ = 0;
    bool begun_ = false;
    std::vector<double> held_;     // by leaf: where it has to stay; none: nobody has to
    std::vector<double> since_;    // of the root's columns: the clock at which its sum is exact
    std::vector<double> full_at_;  // when it is full, if all goes straight on
    std::vector<size_t> stale_;    // columns of which that is another now
    std::vector<uint8_t> is_stale_;
};

void Sweep::begin_leaf(NodeId id) {
    const Node& leaf = node(id);
    Way& way = ways_.data()[id];
    double lowest = kInfinity, rise = 0;
    const auto keys = tree_.keys_of(leaf);
    lines_.resize(std::max(lines_.size(), keys.size()));
    Line* lines = lines_.data();
    bool asks = true;
    for (uint32_t k = 0; k < keys.size(); ++k) {
        if (keys[k].u <= 0) {  // nothing may be had of it: the leaf stays where it is
            asks = false;
            break;
        }
        lines[k] = {passes(keys[k]), rise_of(keys[k])};
        const double slope = lines[k].rise;
        if (slope == kInfinity) continue;
        const double start = surplus() ? lines[k].passes : 0;
        if (start < lowest || (start == lowest && slope < rise)) {
            lowest = start;
            rise = slope;
            way.line = k;
        }
    }
    if (asks) {
        way.a = lowest;
        way.slope = rise;
        way.tau = std::min(1.0, lowest);
        way.moving = way.tau < 1 && leaf.weight > 0 && rise > 0;
        if (!held_.empty() && held_[id] < kInfinity) {
            way.tau = held_[id];
            way.moving = false;
        }
    }
    Course& parent = course(leaf.parent);
    double* sums = leaf.parent == kRoot ? tree_.inners.front().x.data() : nullptr;
    const double speed = way.slope * leaf.weight;
    for (uint32_t k = 0; k < keys.size(); ++k) {
        Key& key = keys[k];
        key.taking = asks && (key.b <= lowest * key.u || (surplus() && k == way.line));
        if (sums != nullptr) sums[key.column] += std::max(key.b, way.tau * key.u);
        if (!way.moving || !key.taking) continue;
        parent.slope.data()[key.column] += speed * key.u;
        ++parent.growers.data()[key.column];
    }
    if (!way.moving) return;
    ++moving_;
    push_leaf(id, next_bend(keys, way, [&](uint32_t k) { return lines[k]; }));
}

// `line_of(k)`: the line of a key.
template <class F>
double Sweep::next_bend(std::span<const Key> keys, const Way& way, F&& line_of) const {
    double next = (1 - way.a) / way.slope;
    for (uint32_t k = 0; k < keys.size(); ++k) {
        const Line line = line_of(k);
        if (!keys[k].taking) next = std::min(next, (line.passes - way.a) / way.slope);
        if (k == way.line || !surplus() || line.rise >= way.slope) continue;
        next = std::min(next, (line.passes - way.a) / (way.slope - line.rise));
    }
    return next;
}

void Sweep::turn(NodeId id, double level) {
    const Node& leaf = node(id);
    Way& way = ways_[id];
    if ((1 - way.a) / way.slope <= level * (1 + kNear)) return stop(id, 1);
    count(id, way, false);
    const auto keys = tree_.keys_of(leaf);
    const Way before = way;
    double rise = way.slope;
    for (uint32_t k = 0; k < keys.size(); ++k) {
        if ((passes(keys[k]) - before.a) / before.slope <= level * (1 + kNear)) keys[k].taking = true;
        if (k == before.line || !surplus()) continue;
        const double slope = rise_of(keys[k]), start = start_of(keys[k]);
        if (slope >= rise || (start - before.a) / (before.slope - slope) > level * (1 + kNear)) continue;
        rise = slope;
        way.line = k;
        way.a = start;
        way.slope = slope;
        keys[k].taking = true;
    }
    count(id, way, true);
    const Course& parent = course(leaf.parent);
    for (uint32_t k = 0; k < keys.size(); ++k) {
        if (keys[k].taking && parent.full[keys[k].column] != 0) return stop(id, way.a + way.slope * level);
    }
    push_leaf(id, next_bend(keys, way, [&](uint32_t k) { return Line{passes(keys[k]), rise_of(keys[k])}; }));
}

void Sweep::stop(NodeId id, double tau) {
    Way& way = ways_[id];
    if (!way.moving) return;
    count(id, way, false);
    way.moving = false;
    --moving_;
    way.tau = std::min(1.0, tau);
}

void Sweep::count(NodeId id, const Way& way, bool counts) {
    const Node& leaf = node(id);
    Course& parent = course(leaf.parent);
    const double speed = way.slope * leaf.weight;
    for (const Key& key : tree_.keys_of(leaf)) {
        if (!key.taking) continue;
        const double by = speed * key.u;
        counts ? adjust(parent, key.column, 0, by) : adjust(parent, key.column, by, 0);
    }
}

void Sweep::push_leaf(NodeId id, double level) {
    const Node& leaf = node(id);
    const Moment moment{level / leaf.weight, id, 0};
    if (!begun_ && leaf.parent == kRoot) return first_.push_back(moment);
    auto& moments = course(leaf.parent).moments;
    moments.push_back(moment);
    std::push_heap(moments.begin(), moments.end(), Later{});
}

void Sweep::adjust(Course& of, size_t column, double before, double after) {
    if (&of == courses_.data()) bring(column);
    double& slope = of.slope.data()[column];
    uint32_t& growers = of.growers.data()[column];
    slope += after - before;
    if (before > 0) --growers;
    if (after > 0) ++growers;
    if (growers == 0) slope = 0;
}

void Sweep::bring(size_t column) {
    Course& root = courses_.front();
    double& since = since_.data()[column];
    if (since < root.clock) {
        tree_.inners.front().x.data()[column] += root.slope.data()[column] * (root.clock - since);
        since = root.clock;
    }
    if (std::exchange(is_stale_.data()[column], 1) == 0) stale_.push_back(column);
}

// When each of the root's columns will be full, where that has changed.
void Sweep::foresee() {
    const Course& root = courses_.front();
    const Inner& sums = tree_.inners.front();
    for (const size_t r : stale_) {
        is_stale_[r] = 0;
        full_at_[r] = kInfinity;
        if (root.slope[r] <= 0 || root.full[r] != 0 || sums.cap[r] == kInfinity) continue;
        full_at_[r] = root.clock + std::max(0.0, sums.cap[r] - sums.x[r]) / root.slope[r];
    }
    stale_.clear();
}

// Children come before their parents here, so the sums of an inner node are those of children that have begun.
void Sweep::begin(NodeId id) {
    if (node(id).inner == kNoIndex) return begin_leaf(id);
    Inner& sums = inner(id);
    const auto add_area = [&](NodeId c) {
        for (size_t r = 0; r < m_; ++r) sums.x[r] += std::max(inner(c).b[r], inner(c).x[r]);
    };
    if (id == kRoot) {  // its leaves have added theirs
        for (const NodeId c : tree_.areas) add_area(c);
        return;
    }
    sums.x = sums.fixed;
    for (NodeId c = node(id).children_begin; c < node(id).children_end; ++c) {
        if (node(c).inner != kNoIndex) {
            add_area(c);
            continue;
        }
        for (const Key& key : tree_.keys_of(node(c))) sums.x[key.column] += std::max(key.b, ways_[c].tau * key.u);
    }
    catch_up(id);
}

void Sweep::advance(NodeId id, double clock) {
    Course& at = course(id);
    const double by = clock - at.clock;
    if (by <= 0) return;
    double* x = inner(id).x.data();
    const double* slope = at.slope.data();
    for (size_t r = 0; r < m_; ++r) x[r] += slope[r] * by;
    at.clock = clock;
}

// Its own next bend by its clock: a sum passes the guarantee, or meets the cap.
double Sweep::next_own(NodeId id) {
    const Course& at = course(id);
    const Inner& sums = inner(id);
    double next = kInfinity;
    for (size_t r = 0; r < m_; ++r) {
        if (at.slope[r] <= 0) continue;
        if (at.above[r] == 0) next = std::min(next, at.clock + (sums.b[r] - sums.x[r]) / at.slope[r]);
        if (at.full[r] == 0 && sums.cap[r] < kInfinity)
            next = std::min(next, at.clock + (sums.cap[r] - sums.x[r]) / at.slope[r]);
    }
    return std::max(next, at.clock);
}

// One thing that is due now; false: nothing is.
bool Sweep::step_inside(NodeId id) {
    Course& at = course(id);
    const Inner& sums = inner(id);
    for (size_t r = 0; r < m_; ++r) {
        const double near = sums.x[r] + at.slope[r] * at.clock * kNear;  // what a moment too short to count adds
        if (at.above[r] == 0 && near >= sums.b[r] * (1 - kNear)) {
            at.above[r] = 1;
            if (at.closing[r] != 0 && at.full[r] == 0) {
                saturate(id, r);
                return true;
            }
        }
        const bool meets_cap = at.full[r] == 0 && at.slope[r] > 0 && near >= sums.cap[r] * (1 - kNear);
        if (meets_cap) {
            saturate(id, r);
            return true;
        }
    }
    if (at.moments.empty() || at.moments.front().at > at.clock * (1 + kNear)) return false;
    const NodeId child = at.moments.front().node;
    const bool stale = node(child).inner != kNoIndex && course(child).version != at.moments.front().version;
    std::pop_heap(at.moments.begin(), at.moments.end(), Later{});
    at.moments.pop_back();
    if (!stale) child_moment(id, child);
    return true;
}

void Sweep::child_moment(NodeId parent, NodeId child) {
    if (node(child).inner != kNoIndex) {
        Course& at = course(child);
        if (at.pace > 0) advance(child, at.target);
        at.seen = course(parent).clock;
        return catch_up(child);
    }
    if (ways_[child].moving) turn(child, course(parent).clock * node(child).weight);
}

void Sweep::catch_up(NodeId id) {
    Course& at = course(id);
    while (true) {
        if (step_inside(id)) continue;
        double fastest = 0;
        for (size_t r = 0; r < m_; ++r) {
            if (at.above[r] != 0 && at.slope[r] > 0 && tree_.pool[r] < kInfinity)
                fastest = std::max(fastest, at.slope[r] / tree_.pool[r]);
        }
        if (fastest > 0) return tell_parent(id, fastest);
        // What grows is free: it goes on until something counts.
        const double next = std::min(next_own(id), at.moments.empty() ? kInfinity : at.moments.front().at);
        if (next == kInfinity) return tell_parent(id, 0);
        advance(id, next);
    }
}

void Sweep::tell_parent(NodeId id, double fastest) {
    Course& at = course(id);
    const Node& self = node(id);
    Course& parent = course(self.parent);
    const Inner& sums = inner(id);
    if (!surplus() && at.seen == 0 && self.weight > 0) {
        at.waits_until = 0;
        for (size_t r = 0; r < m_; ++r) {
            if (at.above[r] != 0 && tree_.pool[r] > 0 && tree_.pool[r] < kInfinity)
                at.waits_until = std::max(at.waits_until, sums.x[r] / tree_.pool[r] / self.weight);
        }
    }
    const bool waits = !surplus() && at.seen * (1 + kNear) < at.waits_until;
    at.pace = fastest > 0 && !waits ? self.weight / fastest : 0;
    for (size_t r = 0; r < m_; ++r) {
        const double now = at.above[r] != 0 ? at.slope[r] * at.pace : 0;
        if (now == at.claimed[r]) continue;
        adjust(parent, r, at.claimed[r], now);
        at.claimed[r] = now;
    }
    ++at.version;
    double next = kInfinity;
    if (waits) {
        next = at.waits_until;
    } else if (at.pace > 0) {
        const double inside = std::min(next_own(id), at.moments.empty() ? kInfinity : at.moments.front().at);
        at.target = inside;
        next = at.seen + (inside - at.clock) / at.pace;
    }
    if (next == kInfinity) return;
    parent.moments.push_back({next, id, at.version});
    std::push_heap(parent.moments.begin(), parent.moments.end(), Later{});
}

// Brings an inner node to its parent's clock.
void Sweep::touch(NodeId id) {
    Course& at = course(id);
    const double now = course(node(id).parent).clock;
    if (at.pace > 0) advance(id, at.clock + (now - at.seen) * at.pace);
    at.seen = now;
}

void Sweep::saturate(NodeId top, size_t column) {
    course(top).full[column] = 1;
    if (top == kRoot) {
        stop_users(column);
        for (const NodeId c : tree_.areas) close(c, column);
        bring(column);
        course(top).slope[column] = 0;
        return;
    }
    // Areas may be very deep, so the way down is no recursion.
    std::vector<std::pair<NodeId, NodeId>> way = {{top, node(top).children_begin}};
    while (!way.empty()) {
        const NodeId id = way.back().first;
        if (way.back().second < node(id).children_end) {
            const NodeId child = way.back().second++;
            if (!closes_all_below(child, column)) continue;
            course(child).full[column] = 1;
            way.emplace_back(child, node(child).children_begin);
            continue;
        }
        course(id).slope[column] = 0;
        way.pop_back();
        if (id != top) catch_up(id);
    }
}

// The root's leaves that take of a column that is full: there may be very many.
void Sweep::stop_users(size_t column) {
    for (size_t r = 0; r < m_; ++r) bring(r);
    Course& root = courses_.front();
    double* slopes = root.slope.data();
    uint32_t* growers = root.growers.data();
    for (const NodeId id : tree_.users[column]) {
        Way& way = ways_.data()[id];
        if (!way.moving) continue;
        const Node& leaf = node(id);
        const auto keys = tree_.keys_of(leaf);
        const Key* full = keys.data();
        while (full->column != column) ++full;
        if (!full->taking) continue;
        const double speed = way.slope * leaf.weight;
        for (const Key& key : keys) {
            if (!key.taking) continue;
            slopes[key.column] -= speed * key.u;
            --growers[key.column];
        }
        way.moving = false;
        --moving_;
        way.tau = std::min(1.0, way.a + way.slope * root.clock * leaf.weight);
    }
    for (size_t r = 0; r < m_; ++r) {
        if (growers[r] == 0) slopes[r] = 0;
    }
}

void Sweep::close(NodeId id, size_t column) {
    if (!closes_all_below(id, column)) return;
    saturate(id, column);
    catch_up(id);
}

// False: it is done with, whatever is below.
bool Sweep::closes_all_below(NodeId id, size_t column) {
    if (node(id).inner != kNoIndex) {
        touch(id);
        course(id).closing[column] = 1;
        if (course(id).above[column] != 0 && course(id).full[column] == 0) return true;
        catch_up(id);
        return false;
    }
    const Way& way = ways_[id];
    if (!way.moving) return false;
    for (const Key& key : tree_.keys_of(node(id))) {
        if (key.column != column || !key.taking) continue;
        stop(id, way.a + way.slope * course(node(id).parent).clock * node(id).weight);
    }
    return false;
}

bool Sweep::step_root() {
    if (moving_ == 0) return false;
    foresee();
    Course& at = courses_.front();
    const bool fresh =
        next_first_ < first_.size() && (at.moments.empty() || Later{}(at.moments.front(), first_[next_first_]));
    double when = fresh ? first_[next_first_].at : at.moments.empty() ? kInfinity : at.moments.front().at;
    size_t fullest = m_;
    const double* full_at = full_at_.data();
    for (size_t r = 0; r < m_; ++r) {
        if (full_at[r] > when || full_at[r] == kInfinity) continue;
        when = full_at[r];
        fullest = r;
    }
    if (when == kInfinity) return false;
    at.clock = std::max(at.clock, when);
    if (fullest < m_) {
        saturate(kRoot, fullest);
        return true;
    }
    const Moment moment = fresh ? first_[next_first_++] : at.moments.front();
    if (!fresh) {
        std::pop_heap(at.moments.begin(), at.moments.end(), Later{});
        at.moments.pop_back();
    }
    const bool stale = node(moment.node).inner != kNoIndex && course(moment.node).version != moment.version;
    if (!stale) child_moment(kRoot, moment.node);
    return true;
}

// Who still moves stands where the clock above it does: nothing stops the children of an area without weight.
void Sweep::finish(NodeId id) {
    if (node(id).inner != kNoIndex) return touch(id);
    const Way& way = ways_[id];
    if (way.moving) stop(id, way.a + way.slope * course(node(id).parent).clock * node(id).weight);
    tree_.tau.data()[id] = way.tau;
    for (Key& key : tree_.keys_of(node(id))) key.x = std::max(key.b, way.tau * key.u);
}

}  // namespace

void raise_levels(Tree& tree) {
    Sweep(tree).run();
}

}  // namespace berth::share
