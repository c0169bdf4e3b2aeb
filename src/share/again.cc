#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <utility>

#include "base/saturating.h"
#include "share/rounding.h"

// Rule 4 once more, when one of the root's leaves has other pods. The others' parts stand in the order in which they
// were served, each beside what it found of every column; so we go through those alone that find another amount than
// before. E.g. three parts of 1 share 2 cpu: a and b have theirs, c has not. If b's leaf wants it no more, c finds 1,
// and the walk ends there, since behind c as much is taken as before.
namespace berth::share {

struct Rounding::Before {
    struct Key {
        uint32_t column;
        int64_t whole;  // of the column, before parts of pods
    };
    Part part;
    bool given = false;
    absl::InlinedVector<Need, 4> needs;
    absl::InlinedVector<Key, 4> keys;
};

bool Rounding::again(NodeId id) {
    Before before;
    forget(id, before);
    sums_ = whole_.whole.data();
    const Part made = round_down(id);
    sums_ = whole_.sums.data();
    if (whole_.tight) return false;
    shift_easy_columns(before);
    const bool same = made.rank == before.part.rank && changed_columns() == 0 &&
                      std::equal(before.needs.begin(), before.needs.end(), whole_.needs.begin() + made.needs,
                                 [](const Need& a, const Need& b) { return a.amount == b.amount; });
    if (!same) return serve_again(before, made);
    if (made.rank == 0) return true;
    std::copy(before.needs.begin(), before.needs.end(), whole_.needs.begin() + made.needs);
    whole_.parts[place_of(made)].run = made.run;
    if (before.given) give(made, 1);
    return true;
}

// What the leaf has of whole pods is given back; its guarantee may be another.
void Rounding::forget(NodeId id, Before& before) {
    const Node& node = nodes_[id];
    before.given = whole_.given[id] != 0;
    if (whole_.rank[id] != 0) {
        before.part = {whole_.rank[id], 0, whole_.need[id]};
        const auto first = whole_.needs.begin() + whole_.need[id];
        before.needs.assign(first, first + (node.keys_end - node.keys_begin));
    }
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
        int64_t& sum = whole_.whole[keys_[k].column].sum;
        before.keys.push_back({keys_[k].column, sum});
        sum -= std::max(taken_[k], least_[k]) - (before.given ? before.needs[k - node.keys_begin].amount : 0);
        taken_[k] = 0;
        least_[k] = guarantee_of(k);
        sum += least_[k];
    }
    whole_.pods[id] = 0;
    whole_.rank[id] = 0;
    whole_.given[id] = 0;
}

// A column in which nobody lacked anything, nor does now, has other sums and no other holders.
void Rounding::shift_easy_columns(const Before& before) {
    for (const auto& key : before.keys) {
        Whole::Column& column = whole_.columns[key.column];
        const int64_t by = whole_.whole[key.column].sum - key.whole;
        const int64_t slack = base::saturating_subtract(column.least_slack, by);
        if (std::min(column.least_slack, slack) < 0) {
            column.delta = by;
            continue;
        }
        column.shift += by;
        column.least_slack = slack;
        sums_[key.column].sum += by;
    }
}

uint64_t Rounding::changed_columns() const {
    uint64_t changed = 0;
    for (size_t r = 0; r < m_; ++r) {
        if (whole_.columns.data()[r].delta != 0) changed |= uint64_t{1} << (r % 64);
    }
    return changed;
}

size_t Rounding::place_of(const Part& part) const {
    const auto found = std::lower_bound(whole_.parts.begin(), whole_.parts.end(), part.rank,
                                        [](const Part& at, uint64_t rank) { return at.rank < rank; });
    return static_cast<size_t>(found - whole_.parts.begin());
}

// Takes one part out of the order, and puts another one in.
void Rounding::move_part(const Part& from, const Part& to) {
    auto& parts = whole_.parts;
    auto& uses = whole_.uses;
    const auto at = [](auto& rows, size_t place) { return rows.begin() + static_cast<ptrdiff_t>(place); };
    size_t old = place_of(from), next = place_of(to);
    if (from.rank == 0) {
        parts.insert(at(parts, next), to);
        uses.insert(at(uses, next), uses_of(to));
    } else if (to.rank == 0) {
        parts.erase(at(parts, old));
        uses.erase(at(uses, old));
    } else {
        if (next > old) {
            std::rotate(at(parts, old), at(parts, old + 1), at(parts, next));
            std::rotate(at(uses, old), at(uses, old + 1), at(uses, next));
            --next;
        } else {
            std::rotate(at(parts, next), at(parts, old), at(parts, old + 1));
            std::rotate(at(uses, next), at(uses, old), at(uses, old + 1));
        }
        parts[next] = to;
        uses[next] = uses_of(to);
    }
}

bool Rounding::serve_again(const Before& before, const Part& made) {
    constexpr size_t kNever = SIZE_MAX;
    auto& parts = whole_.parts;
    if (before.part.rank != 0 || made.rank != 0) move_part(before.part, made);
    const size_t joins = made.rank != 0 ? place_of(made) : kNever;
    size_t leaves = before.given ? place_of(before.part) : kNever;
    if (before.given && before.part.rank == made.rank) ++leaves;  // the new one is served in its place
    uint64_t changed = changed_columns();
    size_t place = changed != 0 ? 0 : std::min(joins, leaves);
    while (place <= parts.size()) {
        if (place == leaves) {
            for (const Need& need : before.needs) whole_.columns[need.column].delta -= need.amount;
            changed = changed_columns();
        }
        if (place == parts.size()) break;
        if (place == joins) {
            join(place);
            changed = changed_columns();
        } else if ((whole_.uses[place] & changed) != 0) {
            const Found found = look_again(parts[place]);
            if (found == Found::Unclear) return false;
            if (found == Found::Other) changed = changed_columns();
        }
        ++place;
        if (changed != 0) continue;
        const size_t next = std::min(joins >= place ? joins : kNever, leaves >= place ? leaves : kNever);
        if (next == kNever) break;
        place = next;
    }
    for (size_t r = 0; r < m_; ++r) sums_[r].sum += std::exchange(whole_.columns[r].delta, 0);
    return true;
}

// How much of a column is taken before a part is served.
int64_t Rounding::sum_before(size_t place, uint32_t column) const {
    const uint64_t bit = uint64_t{1} << (column % 64);
    while (place-- > 0) {
        if ((whole_.uses[place] & bit) == 0) continue;
        const Part& part = whole_.parts[place];
        for (const Need* need = whole_.needs.data() + part.needs;; ++need) {
            if (need->column == column) {
                const int64_t slack = need->slack - whole_.columns[column].shift;
                const int64_t rest = slack + (whole_.given[part.node()] != 0 ? 0 : need->amount);
                return std::max(sums_[column].least, sums_[column].most) - rest;
            }
            if (need->last) break;
        }
    }
    return whole_.whole[column].sum;
}

void Rounding::join(size_t place) {
    const Part part = whole_.parts[place];
    bool fits = true;
    for (Need* need = whole_.needs.data() + part.needs;; ++need) {
        Whole::Column& column = whole_.columns[need->column];
        const int64_t most = std::max(sums_[need->column].least, sums_[need->column].most);
        const int64_t slack = most - sum_before(place, need->column) - need->amount;
        need->slack = slack + column.shift;
        column.least_slack = std::min(column.least_slack, slack);
        fits = fits && (need->amount <= 0 || slack >= 0);
        if (need->last) break;
    }
    if (!fits) return;
    give(part, 1);
    for (const Need* need = whole_.needs.data() + part.needs;; ++need) {
        whole_.columns[need->column].delta += need->amount;
        if (need->last) return;
    }
}

Rounding::Found Rounding::look_again(const Part& part) {
    const NodeId id = part.node();
    const bool had = whole_.given[id] != 0;
    bool fits = true, more = false;
    for (Need* need = whole_.needs.data() + part.needs;; ++need) {
        Whole::Column& column = whole_.columns[need->column];
        need->slack -= column.delta;
        more = more || column.delta < 0;
        const int64_t slack = need->slack - column.shift;
        column.least_slack = std::min(column.least_slack, slack);
        fits = fits && (need->amount <= 0 || slack >= 0);
        if (need->last) break;
    }
    // What else keeps a part below an area is not written down.
    if (nodes_[id].parent != kRoot)
        return had ? (fits ? Found::Same : Found::Unclear) : (more ? Found::Unclear : Found::Same);
    if (fits == had) return Found::Same;
    give(part, fits ? 1 : -1);
    for (const Need* need = whole_.needs.data() + part.needs;; ++need) {
        whole_.columns[need->column].delta += fits ? need->amount : -need->amount;
        if (need->last) return Found::Other;
    }
}

}  // namespace berth::share
