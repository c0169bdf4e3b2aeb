#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sched/ask.h"
#include "sched/strikes.h"

namespace berth::sched {

// Strikes the rows where the ask cannot go. Preparation is the top of the function, then one plain loop over the rows.
struct Filter {
    virtual ~Filter() = default;
    virtual std::string_view name() const = 0;
    virtual void strike(const Ask& ask, const Ledger& ledger, Strikes& strikes) const = 0;
};

inline constexpr int64_t kMaxScore = 100;

// Writes 0..100 for each feasible row, already normalised over them; points[i] belongs to feasible[i].
// Exact integers decide; a float may only prefer, and is rounded here.
struct Scorer {
    virtual ~Scorer() = default;
    virtual std::string_view name() const = 0;
    virtual void score(const Ask& ask, const Ledger& ledger, std::span<const Row> feasible,
                       std::span<int64_t> points) const = 0;
};

// What a scheduler name stands for: which plugins, in which order, with which weights.
struct Profile {
    struct Weighted {
        std::shared_ptr<const Scorer> scorer;
        int64_t weight = 1;
    };
    std::vector<std::shared_ptr<const Filter>> filters;
    std::vector<Weighted> scorers;
};

// kube-scheduler's default profile.
const Profile& default_profile();

// Scales raw values to 0..100 by their maximum, as kube-scheduler's DefaultNormalizeScore; reversed: 100 - that.
void normalize(std::span<int64_t> points, bool reversed);

}  // namespace berth::sched
