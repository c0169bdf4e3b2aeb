#include "sched/preempt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace berth::sched {
namespace {

// kube-scheduler asks DynamicResources first; for a pod without claims its answer is always the same.
std::string in_their_words(std::string_view answer) {
    return fmt::format("no new claims to deallocate, preemption: {}", answer);
}

// Keeps the best row, and counts why rows cannot help.
class Tally {
public:
    explicit Tally(const View& ledger) : ledger_(ledger) {}
    void helpless(const std::vector<std::string>& reasons, size_t rows = 1) {
        asked_ += rows;
        for (const auto& reason : reasons) reasons_[reason] += rows;
    }
    void candidate(Row row, const Cost& cost, std::optional<Victims> victims) {
        ++asked_;
        ++candidates_;
        if (candidates_ > 1 && !better(cost, row)) return;
        cost_ = cost;
        row_ = row;
        victims_ = std::move(victims);
    }
    void take(RowAnswer answer) {
        if (!answer.victims) return helpless(answer.reasons);
        const Cost cost = cost_of(*answer.victims, ledger_);
        candidate(answer.victims->row, cost, std::move(answer.victims));
    }
    bool found() const { return candidates_ > 0; }
    Row row() const { return row_; }

    // The best row's victims, from `victims_on` where only their cost was known.
    template <class VictimsOn>
    Preemption finish(VictimsOn victims_on) && {
        if (!found()) return {std::nullopt, 0, message(), true};
        return {victims_ ? std::move(victims_) : victims_on(row_), candidates_, "", false};
    }

private:
    bool better(const Cost& cost, Row row) const {
        return cost != cost_ ? cost < cost_ : ledger_.name(row) < ledger_.name(row_);
    }
    std::string message() const {
        std::map<std::string, size_t> counts = reasons_;
        const size_t others = ledger_.node_count() - asked_;
        if (others > 0) counts["Preemption is not helpful for scheduling"] += others;
        std::vector<std::string> parts;
        for (const auto& [reason, count] : counts) parts.push_back(fmt::format("{} {}", count, reason));
        std::sort(parts.begin(), parts.end());
        return in_their_words(
            fmt::format("0/{} nodes are available: {}.", ledger_.node_count(), fmt::join(parts, ", ")));
    }

    const View& ledger_;
    size_t candidates_ = 0;
    Cost cost_;
    Row row_ = ledger::kNoRow;
    std::optional<Victims> victims_;
    size_t asked_ = 0;
    std::map<std::string, size_t> reasons_;
};

// A pod that already waits for its victims to end does not look for more.
bool waits_for_victims(const Ask& ask, const View& ledger, const Strikes& strikes) {
    const Row row = ledger.row_of(ask.pod->nominated_node);
    if (row == ledger::kNoRow) return false;
    const Refusal* refusal = strikes.why(row);
    if (refusal && refusal->unresolvable) return false;
    const auto& pods = ledger.at(row).pods;
    return std::any_of(pods.begin(), pods.end(), [&](PodIndex index) {
        const auto& pod = ledger.pod(index);
        return pod.preempted && pod.priority < ask.spec->priority;
    });
}

std::optional<std::string> not_eligible(const Ask& ask, Ledger& ledger, const Profile& profile, const Strikes& strikes,
                                        const Nominated& nominated) {
    if (!ask.pod || ledger.node_count() == 0) return "";
    if (ask.spec->never_preempts) return in_their_words("not eligible due to preemptionPolicy=Never.");
    const Row waited_for = ledger.row_of(ask.pod->nominated_node);
    if (waits_for_victims(ask, ledger, strikes) ||
        (waited_for != ledger::kNoRow && keeps_its_place(ask, ledger, profile, nominated, waited_for))) {
        return in_their_words("not eligible due to a terminating pod on the nominated node.");
    }
    return std::nullopt;
}

std::vector<Row> rows_that_may_open(const Strikes& strikes) {
    std::vector<Row> rows;
    for (Row row = strikes.begin(); row < strikes.end(); ++row) {
        const Refusal* refusal = strikes.why(row);
        if (refusal && !refusal->unresolvable) rows.push_back(row);
    }
    return rows;
}

// Evictions can turn the other filters' answers only from no to yes, unless the ask needs other pods near it, or shares
// a claim with them: a volume that is attached and used by nobody counts twice against the node's limit.
bool only_frees(const model::PodSpec& spec) {
    return spec.affinity.empty() &&
           std::none_of(spec.spread.begin(), spec.spread.end(), [](const auto& c) { return c.hard; }) &&
           std::none_of(spec.volumes.begin(), spec.volumes.end(), [](const auto& v) {
               return v.kind == model::VolumeKind::Claim || v.kind == model::VolumeKind::Ephemeral;
           });
}

// Whether NodeResourcesFit ignores nothing, so that sums alone say who fits.
bool counts_everything(const Profile& profile) {
    return std::any_of(profile.filters.begin(), profile.filters.end(),
                       [](const auto& filter) { return filter->row_term() == RowTerm::Fit; });
}

// What the filters after NodeResourcesFit say about the table as it is.
Strikes after_fit(const Ask& ask, const View& ledger, const Profile& profile) {
    Strikes strikes(ledger, 0, static_cast<Row>(ledger.rows()));
    bool reached = false;
    for (const auto& plugin : profile.filters) {
        if (reached) plugin->strike(ask, ledger, strikes);
        reached = reached || plugin->plugin() == kFit;
    }
    return strikes;
}

std::optional<Victims> known(Row) {
    return std::nullopt;  // candidates by filters carry their victims
}

}  // namespace

Preemption preempt_by_filters(const Ask& ask, Ledger& ledger, const Profile& profile, const Strikes& strikes,
                              const Nominated& nominated) {
    if (auto why = not_eligible(ask, ledger, profile, strikes, nominated))
        return {std::nullopt, 0, *std::move(why), false};
    Tally tally(ledger);
    for (const Row row : rows_that_may_open(strikes)) {
        tally.take(victims_by_filters(ask, ledger, profile, nominated, row));
    }
    return std::move(tally).finish(known);
}

Preemption preempt(const Ask& ask, Ledger& ledger, const Profile& profile, const Strikes& strikes,
                   const Nominated& nominated, CostMemory& memory) {
    if (!ask.pod || !only_frees(*ask.spec) || !counts_everything(profile))
        return preempt_by_filters(ask, ledger, profile, strikes, nominated);
    if (auto why = not_eligible(ask, ledger, profile, strikes, nominated))
        return {std::nullopt, 0, *std::move(why), false};
    const std::vector<Row> rows = rows_that_may_open(strikes);
    Tally tally(ledger);
    if (rows.empty()) return std::move(tally).finish(known);
    if (!ledger.priorities().any_below(ask.spec->priority)) {
        tally.helpless({std::string(kNoVictims)}, rows.size());
        return std::move(tally).finish(known);
    }
    const Strikes others = after_fit(ask, ledger, profile);
    const VictimsBySums sums(ask, ledger);
    auto& costs = memory.rows_for(ask, ledger);
    std::vector<Row> helpless;
    for (const Row row : rows) {
        const bool simple = strikes.why(row)->plugin == kFit && others.open(row) && !ledger.at(row).saturated &&
                            !ask.credit(row) && (nominated.empty() || nominated.before(ask, ledger, row).empty());
        if (!simple) {
            tally.take(victims_by_filters(ask, ledger, profile, nominated, row));
        } else if (const auto cost = costs.cost(row, sums, ledger)) {
            tally.candidate(row, *cost, std::nullopt);
        } else {
            helpless.push_back(row);
        }
    }
    if (!tally.found()) {
        for (const Row row : helpless) tally.helpless(sums.answer(row).reasons);
    }
    return std::move(tally).finish([&](Row row) { return sums.answer(row).victims; });
}

}  // namespace berth::sched
