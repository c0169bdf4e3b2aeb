#include "sched/cycle.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/int128.h"
#include "base/saturating.h"
#include "model/preemption_hold.h"
#include "sched/credit.h"
#include "sched/draw.h"
#include "sched/which.h"

namespace berth::sched {
namespace {

// Missing over allocatable, as an exact fraction.
struct Shortage {
    int64_t missing = 0;
    int64_t of = 1;
    bool operator<(const Shortage& other) const {
        return static_cast<int128>(missing) * other.of < static_cast<int128>(other.missing) * of;
    }
};

// The largest over the resources.
Shortage shortage_on(const model::PodSpec& spec, const View& ledger, Row row) {
    Shortage worst;
    spec.requests.for_each([&](model::ResourceId id, int64_t amount) {
        if (amount <= 0) return;
        const int64_t missing = std::max<int64_t>(0, base::saturating_subtract(amount, ledger.free(row, id)));
        const Shortage here{missing, ledger.column(id)->allocatable[row]};
        if (worst < here) worst = here;
    });
    return worst;
}

// Somebody is nominated there, or has its room there and waits for others to go: an older one would be served first.
bool awaited(const Ask& ask, const View& ledger, const Nominated& nominated, Row row) {
    const auto& here = ledger.at(row).reservations;
    return !nominated.before(ask, ledger, row).empty() ||
           std::any_of(here.begin(), here.end(), [&](ReservationIndex index) {
               const auto& entry = ledger.reservation(index);
               return entry.waiting() && !model::preemption_hold_owner(*entry.object).empty();
           });
}

// What is more than the node has even when it is empty.
std::vector<std::string> too_large(const model::PodSpec& spec, const View& ledger, Row row) {
    std::vector<std::string> reasons;
    spec.requests.for_each([&](model::ResourceId id, int64_t amount) {
        const auto* column = ledger.column(id);
        if (amount <= 0 || (column && amount <= column->allocatable[row])) return;
        reasons.push_back(id == model::kPods ? "Too many pods"
                                             : fmt::format("Insufficient {}", model::resource_name(id)));
    });
    return reasons;
}

// What closes a row to a reservation that may wait there.
Strikes closed_to_waiting(const Ask& ask, const View& ledger, const Profile& profile, const Nominated& nominated) {
    Strikes strikes = filter(ask, ledger, profile, 0, static_cast<Row>(ledger.rows()), kOfRoom);
    strikes.each_open([&](Row row) {
        auto reasons = too_large(*ask.spec, ledger, row);
        if (reasons.empty() && awaited(ask, ledger, nominated, row)) {
            return strikes.strike(row, strikes.refusal(kFit, {"node(s) awaited by preempting pods"}, false));
        }
        if (!reasons.empty()) strikes.strike(row, strikes.refusal(kFit, std::move(reasons), true));
    });
    return strikes;
}

Row least_short(const Ask& ask, const View& ledger, const Strikes& strikes) {
    Row best = ledger::kNoRow;
    Shortage least;
    strikes.each_open([&](Row row) {
        const Shortage shortage = shortage_on(*ask.spec, ledger, row);
        const bool tied = best != ledger::kNoRow && !(shortage < least) && !(least < shortage);
        const bool better = best == ledger::kNoRow || shortage < least;
        if (!better && !(tied && ledger.name(row) < ledger.name(best))) return;
        best = row;
        least = shortage;
    });
    return best;
}

// Waits where the least is missing, if no row is open and the reservation may wait.
Decision placed_or_waiting(const Ask& ask, const View& ledger, const Profile& profile, const Nominated& nominated,
                           Verdict verdict) {
    Decision decision{std::move(verdict), {}, {}, {}, false, {}};
    if (decision.verdict.chosen != ledger::kNoRow) {
        decision.which = which_on(ask, ledger, decision.verdict.chosen, {});
        return decision;
    }
    if (!ask.reservation->pre_allocation) return decision;
    Strikes strikes = closed_to_waiting(ask, ledger, profile, nominated);
    decision.verdict.chosen = least_short(ask, ledger, strikes);
    if (decision.verdict.chosen == ledger::kNoRow) {
        decision.verdict.strikes = std::move(strikes);
        return decision;
    }
    decision.waiting = true;
    decision.missing = missing_on(*ask.spec, ledger, decision.verdict.chosen);
    return decision;
}

void name_parts(const Ask& ask, const View& ledger, ledger::WhichPtr which, Decision& decision) {
    decision.which = std::move(which);
    decision.annotations = annotations_for(decision.charges, decision.which, *ask.pod, ledger);
}

Strikes filter_all(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated) {
    return filter(ask, ledger, profile, nominated, 0, static_cast<Row>(ledger.rows()));
}

}  // namespace

model::Resources missing_on(const model::PodSpec& spec, const View& ledger, Row row) {
    model::Resources missing;
    spec.requests.for_each([&](model::ResourceId id, int64_t amount) {
        const int64_t short_by = base::saturating_subtract(amount, ledger.free(row, id));
        if (amount > 0 && short_by > 0) missing.set(id, short_by);
    });
    return missing;
}

Decision decided(const Ask& ask, const View& ledger, Verdict verdict) {
    Decision decision{std::move(verdict), {}, {}, {}, false, {}};
    const Row chosen = decision.verdict.chosen;
    if (chosen == ledger::kNoRow) return decision;
    decision.charges = charges_on(ask, ledger, chosen);
    name_parts(ask, ledger, which_on(ask, ledger, chosen, decision.charges), decision);
    return decision;
}

Decision decided(const Ask& ask, Ledger& ledger, const Nominated& nominated, Verdict verdict) {
    const Row row = verdict.chosen;
    if (row == ledger::kNoRow || nominated.empty()) return decided(ask, ledger, std::move(verdict));
    Decision decision{std::move(verdict), charges_beside(ask, ledger, nominated, row), {}, {}, false, {}};
    name_parts(ask, ledger, which_beside(ask, ledger, nominated, row, decision.charges), decision);
    return decision;
}

Decision decide_pod(const model::Pod& pod, const View& ledger, const Profile& profile) {
    Ask ask = ask_for(pod, ledger);
    ask.packs = profile.packs_devices;
    return decided(ask, ledger, decide(ask, ledger, profile));
}

Decision decide_pod(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated) {
    const Row waited_for = ledger.row_of(ask.pod->nominated_node);
    if (waited_for != ledger::kNoRow) {
        for (const Ask& there : {nominated.as_promised(ask, ledger, waited_for), ask}) {
            Strikes strikes = filter(there, ledger, profile, nominated, waited_for, waited_for + 1);
            if (!strikes.open(waited_for)) continue;
            return decided(there, ledger, nominated, weigh(there, ledger, profile, std::move(strikes)));
        }
    }
    return decided(ask, ledger, nominated, weigh(ask, ledger, profile, filter_all(ask, ledger, profile, nominated)));
}

Decision decide_reservation(const model::Reservation& reservation, const View& ledger, const Profile& profile) {
    Ask ask = ask_for(reservation);
    ask.packs = profile.packs_devices;
    return placed_or_waiting(ask, ledger, profile, {}, decide(ask, ledger, profile));
}

Decision decide_reservation(const model::Reservation& reservation, Ledger& ledger, const Profile& profile,
                            const Nominated& nominated, uint64_t* looks) {
    Ask ask = ask_for(reservation, looks);
    ask.packs = profile.packs_devices;
    Decision decision = placed_or_waiting(ask, ledger, profile, nominated,
                                          weigh(ask, ledger, profile, filter_all(ask, ledger, profile, nominated)));
    if (decision.which) decision.which = which_beside(ask, ledger, nominated, decision.verdict.chosen, {});
    return decision;
}

}  // namespace berth::sched
