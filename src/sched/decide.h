#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "sched/plugin.h"

namespace berth::sched {

// The answer for one ask. Total: it always answers, and for every row it says why not.
struct Verdict {
    std::vector<Row> feasible;    // every row that passes all filters
    std::vector<int64_t> scores;  // weighted totals, beside feasible
    // How much reservations supply there, beside feasible; it outranks the scores. Empty: the pod matches none.
    std::vector<int64_t> reservation_scores;
    Row chosen = ledger::kNoRow;  // the best; ties go to the smallest node name, bytewise
    Strikes strikes;
    std::string fault = {};  // why the feasible rows could not be scored; then none is chosen
};

// The plain whole-table evaluation: the definition, and the oracle of every faster way.
Verdict decide(const Ask& ask, const View& ledger, const Profile& profile);
// The same when the filters have spoken already.
// `extra`, if any, are points by row that others add.
Verdict weigh(const Ask& ask, const View& ledger, const Profile& profile, Strikes strikes,
              std::span<const int64_t> extra = {});

// The best of these rows, all of them feasible: what decide() chooses when no other row is.
Row best_of(const Ask& ask, const View& ledger, const Profile& profile, std::span<const Row> feasible);

// What filters look at on each row, for Ledger::count_looks().
size_t looks_per_row(const model::PodSpec& spec);
// What a first attempt may cost. Who asks for few things is not expected to be long, however large the cluster is.
uint64_t looks_expected(const model::PodSpec& spec, const View& ledger);

inline constexpr PluginId kFit = PluginId::NodeResourcesFit;

// Those that ask whether a node has enough, or the right ones, left.
inline constexpr std::array kOfRoom{kFit, PluginId::NodeNUMAResource, PluginId::DeviceShare};

// Runs the filters alone over [begin, end); all but these.
Strikes filter(const Ask& ask, const View& ledger, const Profile& profile, Row begin, Row end,
               std::span<const PluginId> but = {});

// "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s)."
std::string diagnosis(const Strikes& strikes, const View& ledger);

}  // namespace berth::sched
