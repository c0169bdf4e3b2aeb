#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sched/nominated.h"

namespace berth::sched {

using ledger::PodIndex;

inline constexpr std::string_view kNoVictims = "No preemption victims found for incoming pod";

// Who has to go so that an ask fits on a row.
struct Victims {
    Row row = ledger::kNoRow;
    std::vector<PodIndex> pods;  // most important first
    int64_t violations = 0;      // how many of them no budget allows to go
    bool operator==(const Victims&) const = default;
};

// The victims of one row, or why nobody's going would help.
struct RowAnswer {
    std::optional<Victims> victims;
    std::vector<std::string> reasons;
};

// While it lives, pods can be taken out of their rows; whoever is still out returns with its end.
class Lifted {
public:
    explicit Lifted(Ledger& ledger) : ledger_(ledger) {}
    ~Lifted();
    Lifted(const Lifted&) = delete;
    Lifted& operator=(const Lifted&) = delete;
    void lift(PodIndex pod);
    void put_back(PodIndex pod);

private:
    Ledger& ledger_;
    std::vector<PodIndex> out_;
};

// Higher priority first; then who runs longer; then by name, so that the order is total.
bool more_important(const View& ledger, PodIndex a, PodIndex b);

// Pods on the row that the ask may evict: of lower priority, and none that a live reservation pays for, unless the ask
// draws from that reservation too. In the order of importance.
std::vector<PodIndex> evictable(const Ask& ask, const View& ledger, Row row);

// Splits pods, given in order of importance, by whether their budgets allow them to go when all before them go too.
struct ByBudget {
    std::vector<PodIndex> violating;
    std::vector<PodIndex> allowed;
};
ByBudget split_by_budget(const View& ledger, const std::vector<PodIndex>& pods);

// The definition: everybody evictable goes; then one after the other returns if the ask still fits, first those whose
// budget is violated, then the others, in the order of importance.
RowAnswer victims_by_filters(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated,
                             Row row);

// The same where `opens` says whether the ask has what it needs of the row; nobody, if evictions do not help or nobody
// has to go.
std::optional<Victims> victims_until(const Ask& ask, Ledger& ledger, Row row, const std::function<bool()>& opens);

// The same by sums alone, for rows that only NodeResourcesFit refuses and whose other answers evictions cannot change.
class VictimsBySums {
public:
    VictimsBySums(const Ask& ask, const View& ledger);
    RowAnswer answer(Row row) const;

private:
    struct Want {
        model::ResourceId id;
        int64_t amount;
        const ledger::Column* column;
        std::string reason;
    };
    std::vector<int64_t> slack_without(const std::vector<PodIndex>& pods, Row row) const;
    // Takes the pod's requests out of the slack if they fit in.
    bool returns(PodIndex pod, std::vector<int64_t>& slack) const;

    const Ask& ask_;
    const View& ledger_;
    std::vector<Want> wants_;
};

}  // namespace berth::sched
