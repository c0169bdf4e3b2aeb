#include "sched/decide.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "sched/draw.h"
#include "sched/queue.h"

namespace berth::sched {
namespace {

constexpr size_t kManyThings = 200;

std::vector<int64_t> total_scores(const Ask& ask, const View& ledger, const Profile& profile,
                                  std::span<const Row> feasible) {
    std::vector<int64_t> total(feasible.size());
    std::vector<int64_t> points(feasible.size());
    for (const auto& [scorer, weight] : profile.scorers) {
        scorer->score(ask, ledger, feasible, points);
        for (size_t i = 0; i < total.size(); ++i) total[i] += weight * points[i];
    }
    return total;
}

std::vector<int64_t> scores_by_reservations(const Ask& ask, const View& ledger, std::span<const Row> feasible) {
    std::vector<int64_t> scores;
    if (ask.credits.empty()) return scores;
    for (const Row row : feasible) scores.push_back(reservation_score(ask, ledger, row));
    return scores;
}

Row best(const View& ledger, std::span<const Row> feasible, std::span<const int64_t> scores,
         std::span<const int64_t> supplied) {
    Row chosen = ledger::kNoRow;
    std::pair<int64_t, int64_t> highest;
    for (size_t i = 0; i < feasible.size(); ++i) {
        const std::pair here(supplied.empty() ? 0 : supplied[i], scores[i]);
        const bool better = chosen == ledger::kNoRow || here > highest ||
                            (here == highest && ledger.name(feasible[i]) < ledger.name(chosen));
        if (!better) continue;
        chosen = feasible[i];
        highest = here;
    }
    return chosen;
}

// A single row is taken without being scored, and a reservation goes where it can.
std::string fault_in_scoring(const Ask& ask, const Profile& profile, std::span<const Row> feasible) {
    for (size_t i = 0; i < profile.scorers.size() && ask.pod && feasible.size() > 1; ++i) {
        if (auto fault = profile.scorers[i].scorer->fault(ask); !fault.empty()) return fault;
    }
    return {};
}

}  // namespace

size_t looks_per_row(const model::PodSpec& spec) {
    return 1 + spec.spread.size() + spec.node_selector.size() +
           (spec.required_nodes ? spec.required_nodes->size() : 0) + spec.tolerations.size() + spec.volumes.size();
}

uint64_t looks_expected(const model::PodSpec& spec, const View& ledger) {
    using ledger::Tallies;
    const uint64_t by_rows = ledger.rows() * looks_per_row(spec);
    const size_t terms = spec.affinity.size() + spec.anti_affinity.size();
    if (looks_per_row(spec) + terms < kManyThings) return std::min(by_rows, Queue::kLong);
    const uint64_t groups = ledger.near().sizes().groups;
    // Twice: the fast way asks first.
    return by_rows + terms * (2 * Tallies::kLooksPerTerm + groups * Tallies::kLooksPerGroup);
}

Strikes filter(const Ask& ask, const View& ledger, const Profile& profile, Row begin, Row end,
               std::span<const PluginId> but) {
    if (ask.looks) *ask.looks += (end - begin) * looks_per_row(*ask.spec);
    Strikes strikes(ledger, begin, end);
    for (const auto& plugin : profile.filters) {
        if (std::find(but.begin(), but.end(), plugin->plugin()) == but.end()) plugin->strike(ask, ledger, strikes);
    }
    return strikes;
}

Verdict decide(const Ask& ask, const View& ledger, const Profile& profile) {
    return weigh(ask, ledger, profile, filter(ask, ledger, profile, 0, static_cast<Row>(ledger.rows())));
}

Verdict weigh(const Ask& ask, const View& ledger, const Profile& profile, Strikes strikes,
              std::span<const int64_t> extra) {
    std::vector<Row> feasible = strikes.open_rows();
    if (auto fault = fault_in_scoring(ask, profile, feasible); !fault.empty()) {
        return {std::move(feasible), {}, {}, ledger::kNoRow, std::move(strikes), std::move(fault)};
    }
    std::vector<int64_t> scores = total_scores(ask, ledger, profile, feasible);
    for (size_t i = 0; i < feasible.size() && !extra.empty(); ++i) scores[i] += extra[feasible[i]];
    std::vector<int64_t> supplied = scores_by_reservations(ask, ledger, feasible);
    const Row chosen = best(ledger, feasible, scores, supplied);
    return {std::move(feasible), std::move(scores), std::move(supplied), chosen, std::move(strikes)};
}

Row best_of(const Ask& ask, const View& ledger, const Profile& profile, std::span<const Row> feasible) {
    return best(ledger, feasible, total_scores(ask, ledger, profile, feasible),
                scores_by_reservations(ask, ledger, feasible));
}

std::string diagnosis(const Strikes& strikes, const View& ledger) {
    if (ledger.node_count() == 0) return "no nodes available to schedule pods";
    if (const Refusal* refusal = strikes.refused()) {
        return fmt::format("0/{} nodes are available: {}.", ledger.node_count(), fmt::join(refusal->reasons, ", "));
    }
    std::map<std::string, size_t> counts;
    strikes.each_refusal([&](const Refusal& refusal, size_t rows) {
        for (const auto& reason : refusal.reasons) counts[reason] += rows;
    });
    std::vector<std::string> parts;
    for (const auto& [reason, count] : counts) parts.push_back(fmt::format("{} {}", count, reason));
    std::sort(parts.begin(), parts.end());
    return fmt::format("0/{} nodes are available: {}.", ledger.node_count(), fmt::join(parts, ", "));
}

}  // namespace berth::sched
