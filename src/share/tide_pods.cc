#include <algorithm>
#include <bit>
#include <cmath>

#include "base/saturating.h"
#include "share/digits.h"
#include "share/tide.h"

// Whole pods while levels move (tide.h).
namespace berth::share {

// What a leaf has of its pods, beside the bounds within which it has just that.
struct Tide::Pods {
    absl::InlinedVector<int64_t, 4> taken;  // by key
    int64_t whole = 0;
    uint32_t run = 0;
    bool part = false;  // it has a part of the next one
    bool present = false;
    Line rest;  // of that
    uint64_t rank = 0;
    Watch::Bounds* bounds = nullptr;
};

// The amounts of one run's pods against the shares of a leaf: so many are covered as the least of its keys says.
struct Tide::Cover {
    const Line* lines;    // of the leaf's keys
    const int64_t* size;  // of a pod
    const int64_t* taken;
    uint32_t count;  // of keys
    double level;

    double of(uint32_t k) const {
        const double left = lines[k].at + lines[k].rise * level - static_cast<double>(taken[k]);
        return std::max(0.0, left) / static_cast<double>(size[k]);
    }
    double all() const {
        double covered = kInfinity;
        for (uint32_t k = 0; k < count; ++k) {
            if (size[k] > 0) covered = std::min(covered, of(k));
        }
        return covered;
    }
    // The level at which so many are; -kInfinity: at any, kInfinity: at none.
    double level_of(double pods) const {
        double highest = -kInfinity;
        for (uint32_t k = 0; k < count; ++k) {
            if (size[k] <= 0) continue;
            const double asked = pods * static_cast<double>(size[k]) + static_cast<double>(taken[k]) - lines[k].at;
            if (lines[k].rise > 0)
                highest = std::max(highest, asked / lines[k].rise);
            else if (asked > 0)
                return kInfinity;
        }
        return highest;
    }
};

bool Tide::count_pods(NodeId id, Course& course) {
    const Node& leaf = tree_.nodes[id];
    const uint32_t keys = leaf.keys_end - leaf.keys_begin;
    Pods pods;
    pods.taken.assign(keys, 0);
    pods.bounds = &course.bounds;
    leave_zone(id);
    for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) {
        whole_[column_[k]] -= std::max(taken_[k], least_[k]);
        least_[k] = guarantee_of(tree_.keys[k], tree_.stated[k]);
    }
    bool all = true;
    for (uint32_t run = leaf.runs_begin; all && run < leaf.runs_end; ++run) {
        if (!count_run(leaf, run, course, pods)) return false;
        all = pods.run == kNoIndex;
    }
    for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) {
        taken_[k] = pods.taken[k - leaf.keys_begin];
        // What is asked for beyond pods would be split anywhere.
        if (all && taken_[k] != tree_.stated[k].demand) return false;
        whole_[column_[k]] += std::max(taken_[k], least_[k]);
    }
    stands_[id].pods = pods.whole;
    if (pods.part) set_part(id, pods);
    return true;
}

// False: a limit is in the way, or pods and demand do not agree. pods.run: kNoIndex when it has all of them.
bool Tide::count_run(const Node& leaf, uint32_t number, const Course& course, Pods& pods) const {
    const Run& run = tree_.runs[number];
    const Cover cover{lines_.data() + leaf.keys_begin, tree_.sizes.data() + run.sizes, pods.taken.data(),
                      leaf.keys_end - leaf.keys_begin, course.by == kNoIndex ? 0 : level_[course.by]};
    const double covered = cover.all();
    const auto above = [&](double amount) { pods.bounds->low = std::max(pods.bounds->low, cover.level_of(amount)); };
    const auto below = [&](double amount) { pods.bounds->high = std::min(pods.bounds->high, cover.level_of(amount)); };
    const bool all = covered + kWholePod >= static_cast<double>(run.count);
    const int64_t whole = all ? run.count : static_cast<int64_t>(covered + kWholePod);
    const auto parts = static_cast<double>(whole);
    if (whole > 0) above(parts - kWholePod);
    if (whole < run.count) {
        below(parts + 1 - kWholePod);
        pods.part = covered - parts > kWholePod;
        pods.part ? above(parts + kWholePod) : below(parts + kWholePod);
    }
    pods.run = whole == run.count ? kNoIndex : number;
    pods.present = whole < run.present;
    if (pods.part) find_part(cover, whole, pods);
    pods.whole += whole;
    for (uint32_t k = 0; k < cover.count; ++k) {
        const Stated& stated = tree_.stated[leaf.keys_begin + k];
        const int64_t least = least_[leaf.keys_begin + k];
        int64_t& taken = pods.taken[k];
        taken += cover.size[k] * whole;
        if (whole > 0 && taken > least && taken > stated.limit) return false;
        const int64_t next = base::saturating_add(taken, cover.size[k]);
        if (!all && next > stated.demand) return false;  // its pods are more than it asks for
        if (next > std::max(taken, least) && next > stated.limit) pods.part = false;
    }
    return true;
}

// The rest, in the line of the key that covers least, as long as that is so.
void Tide::find_part(const Cover& cover, int64_t whole, Pods& pods) const {
    uint32_t least = kNoIndex;
    const auto line_of = [&](uint32_t k) {
        const auto size = static_cast<double>(cover.size[k]);
        return Line{(cover.lines[k].at - static_cast<double>(cover.taken[k])) / size, cover.lines[k].rise / size};
    };
    for (uint32_t k = 0; k < cover.count; ++k) {
        if (cover.size[k] > 0 && (least == kNoIndex || cover.of(k) < cover.of(least))) least = k;
    }
    const Line line = line_of(least);
    for (uint32_t k = 0; k < cover.count; ++k) {
        if (cover.size[k] <= 0 || k == least) continue;
        const Line other = line_of(k);
        const double by = other.rise - line.rise;
        if (std::abs(by) <= 1e-12 * (line.rise + other.rise)) continue;
        const double crossing = (line.at - other.at) / by;
        by < 0 ? pods.bounds->high = std::min(pods.bounds->high, crossing)
               : pods.bounds->low = std::max(pods.bounds->low, crossing);
    }
    pods.rest = {line.at - static_cast<double>(whole), line.rise};
    const double rest = cover.of(least) - static_cast<double>(whole);
    pods.rank = Part::rank_of(pods.present, share::parts_of(rest), 0);
    for (const uint64_t border : {first_middle_, first_late_}) {
        if (border >> 31 != (pods.present ? 0 : 1)) continue;
        // Between two amounts that are told apart.
        const int64_t missing = static_cast<int64_t>(border & INT32_MAX);
        const double at = (static_cast<double>(kPartsOfPod - missing) + 0.5) * kWholePod;
        const double level = cover.level_of(static_cast<double>(whole) + at);
        rest > at ? pods.bounds->low = std::max(pods.bounds->low, level)
                  : pods.bounds->high = std::min(pods.bounds->high, level);
    }
}

void Tide::set_part(NodeId id, const Pods& pods) {
    const Node& leaf = tree_.nodes[id];
    Stand& stand = stands_[id];
    stand.run = pods.run;
    stand.present = pods.present;
    stand.part = pods.rest;
    const int64_t* size = tree_.sizes.data() + tree_.runs[pods.run].sizes;
    for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) {
        const int64_t next = taken_[k] + size[k - leaf.keys_begin];
        needs_[k] = std::max(next, least_[k]) - std::max(taken_[k], least_[k]);
    }
    const uint64_t upper = pods.rank >> 32;
    enter_zone(id, upper < first_middle_ ? Zone::Early : upper < first_late_ ? Zone::Middle : Zone::Late);
}

// ---- zones

void Tide::leave_zone(NodeId id) {
    Stand& stand = stands_[id];
    const Node& leaf = tree_.nodes[id];
    if (stand.zone == Zone::Early) {
        for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) early_[column_[k]] -= needs_[k];
    } else if (stand.zone == Zone::Late) {
        auto& list = late_[stand.column * kDigits + stand.digits];
        const Late last = list.back();
        stands_[last.node].place = stand.place;
        list[stand.place] = last;
        list.pop_back();
    }
    stand.zone = Zone::None;
}

void Tide::enter_zone(NodeId id, Zone zone) {
    Stand& stand = stands_[id];
    const Node& leaf = tree_.nodes[id];
    stand.zone = zone;
    if (zone == Zone::Early) {
        for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) early_[column_[k]] += needs_[k];
    } else if (zone == Zone::Middle) {
        if (!std::exchange(stand.listed, true)) middle_.push_back({id, 0, 0});
    } else {
        // What it needs most of is what it may most likely lack.
        stand.digits = 0;
        stand.column = column_[leaf.keys_begin];
        int64_t need = 0;
        for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) {
            const auto digits = static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(needs_[k])));
            if (!is_full(column_[k]) || digits < stand.digits) continue;
            stand.digits = digits;
            stand.column = column_[k];
            need = needs_[k];
        }
        auto& list = late_[stand.column * kDigits + stand.digits];
        stand.place = static_cast<uint32_t>(list.size());
        list.push_back({need, id});
    }
}

uint64_t Tide::rank_of(NodeId id) const {
    const Stand& stand = stands_[id];
    const double rest = stand.part.at + (stand.by == kNoIndex ? 0 : stand.part.rise * level_[stand.by]);
    return Part::rank_of(stand.present, share::parts_of(rest), id);
}

// What others see of it.
Tide::Parts Tide::parts_of(NodeId id) const {
    const Stand& stand = stands_[id];
    Parts parts;
    for (uint32_t k = stand.keys_begin; k < stand.keys_end; ++k) parts.taken.push_back(std::max(taken_[k], least_[k]));
    if (stand.zone == Zone::None) return parts;
    parts.rank = rank_of(id);
    parts.needs.assign(needs_.begin() + stand.keys_begin, needs_.begin() + stand.keys_end);
    return parts;
}

// Early ones, as long as what they need is there in the end: then it was there for each of them.
bool Tide::serve_early() {
    bool fits = true;
    for (size_t column = 0; column < m_; ++column) {
        slack_[column] = most_[column] - whole_[column] - early_[column];
        fits = fits && slack_[column] >= 0;
    }
    return fits;
}

bool Tide::is_given(NodeId id) {
    if (stands_[id].zone == Zone::None) return false;
    if (!served_) {
        if (stands_[id].zone == Zone::Early && serve_early()) return true;
        serve_middle();
    }
    const Stand& stand = stands_[id];
    if (stand.zone == Zone::Early) return true;
    if (stand.zone == Zone::Late && !late_served_) {
        if (!fits(id)) return false;  // nor does it when others behind the middle have theirs
        serve_late();
    }
    return stand.given;
}

void Tide::serve_middle() {
    if (!serve_early()) {
        divide_again();
        serve_early();
    }
    for (const NodeId id : given_) stands_[id].given = false;
    given_.clear();
    std::erase_if(middle_, [&](Part& part) {
        Stand& stand = stands_[part.node()];
        if (stand.zone != Zone::Middle) return !(stand.listed = false);
        part.rank = rank_of(part.node());
        return false;
    });
    for (size_t i = 1; i < middle_.size(); ++i) {  // they are nearly in order
        const Part part = middle_[i];
        size_t at = i;
        for (; at > 0 && middle_[at - 1].rank > part.rank; --at) middle_[at] = middle_[at - 1];
        middle_[at] = part;
    }
    serve_parts(middle_);
    served_ = same_ = true;
    late_served_ = false;
    served_at_ = level_;
}

void Tide::serve_late() {
    few_.clear();
    for (size_t column = 0; column < m_; ++column) {
        const auto digits = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(slack_[column])));
        for (size_t i = 0; i <= digits; ++i) {
            for (const Late& part : late_[column * kDigits + i]) {
                if (part.need <= slack_[column] && fits(part.node)) few_.push_back({rank_of(part.node), 0, 0});
            }
        }
    }
    std::sort(few_.begin(), few_.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
    serve_parts(few_);
    late_served_ = true;
}

bool Tide::fits(NodeId id) const {
    const Stand& leaf = stands_[id];
    for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) {
        if (needs_[k] > slack_[column_[k]]) return false;
    }
    return true;
}

void Tide::take(NodeId id) {
    const Stand& leaf = stands_[id];
    for (uint32_t k = leaf.keys_begin; k < leaf.keys_end; ++k) slack_[column_[k]] -= needs_[k];
}

void Tide::serve_parts(const std::vector<Part>& parts) {
    for (const Part& part : parts) {
        const NodeId id = part.node();
        if (!fits(id)) continue;
        take(id);
        stands_[id].given = true;
        given_.push_back(id);
    }
}

// The middle begins a little before the first that is refused, and ends where few of the rest would fit. `parts` stand
// in order, and slack_ is what they share.
void Tide::divide(const std::vector<Part>& parts) {
    constexpr size_t kLooks = 64, kSample = 8, kFew = 4;
    size_t first = parts.size(), last = 0, next_look = 0;
    for (; last < parts.size(); ++last) {
        const NodeId id = parts[last].node();
        if (fits(id)) {
            take(id);
            continue;
        }
        first = std::min(first, last);
        if (last < next_look) continue;
        next_look = last + parts.size() / kLooks + 1;
        size_t fitting = 0;
        for (size_t i = last; i < parts.size(); i += kSample) fitting += fits(parts[i].node()) ? kSample : 0;
        if (fitting * kFew <= last - first) break;
    }
    const size_t margin = 16 + parts.size() / 128;
    const auto border = [&](size_t at) { return at < parts.size() ? parts[at].rank >> 32 : UINT64_MAX; };
    first_middle_ = border(first - std::min(first, margin));
    first_late_ = std::max(first_middle_, border(last));
}

void Tide::divide_again() {
    std::vector<Part> parts, other;
    for (NodeId id = 1; id < stands_.size(); ++id) {
        if (stands_[id].zone != Zone::None) parts.push_back({rank_of(id), 0, 0});
    }
    sort_by_digits(parts, other, 0, [](const Part& part) { return part.rank; });
    for (size_t column = 0; column < m_; ++column) slack_[column] = most_[column] - whole_[column];
    divide(parts);
    for (NodeId id = 1; id < stands_.size(); ++id) {
        if (stands_[id].zone != Zone::None) stand(id);
    }
}

}  // namespace berth::share
