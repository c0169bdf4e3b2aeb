#include "sched/victims.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/saturating.h"
#include "sched/credit.h"
#include "sched/shares.h"

namespace berth::sched {
namespace {

// Whether taking the pod out could free anything for the ask.
bool may_go(const Ask& ask, const View& ledger, Row row, PodIndex index) {
    const auto& pod = ledger.pod(index);
    if (pod.priority >= ask.spec->priority) return false;
    const Credit* credit = ask.credit(row);
    bool may = true;
    pod.each_charge([&](ReservationIndex to, const model::Resources&) {
        if (may && ledger.reservation(to).holds_room()) may = credit && credit->covers(to);
    });
    return may;
}

void sort_by_importance(const View& ledger, std::vector<PodIndex>& pods) {
    std::sort(pods.begin(), pods.end(), [&](PodIndex a, PodIndex b) { return more_important(ledger, a, b); });
}

// Lets those return who can, first the ones whose budget would be violated.
template <class Returns>
Victims choose(const View& ledger, Row row, const std::vector<PodIndex>& pods, Returns returns) {
    Victims victims;
    victims.row = row;
    const auto [violating, allowed] = split_by_budget(ledger, pods);
    for (const PodIndex pod : violating) {
        if (returns(pod)) continue;
        victims.pods.push_back(pod);
        ++victims.violations;
    }
    for (const PodIndex pod : allowed) {
        if (!returns(pod)) victims.pods.push_back(pod);
    }
    sort_by_importance(ledger, victims.pods);
    return victims;
}

// The same where all of them are lifted, and `opens` says whether the ask still has what it needs.
template <class Opens>
Victims choose_of(Ledger& ledger, Row row, const std::vector<PodIndex>& pods, Lifted& lifted, Opens opens) {
    return choose(ledger, row, pods, [&](PodIndex pod) {
        lifted.put_back(pod);
        if (opens()) return true;
        lifted.lift(pod);
        return false;
    });
}

}  // namespace

Lifted::~Lifted() {
    while (!out_.empty()) put_back(out_.back());
}

void Lifted::lift(PodIndex pod) {
    ledger_.lift(pod);
    out_.push_back(pod);
}

void Lifted::put_back(PodIndex pod) {
    ledger_.put_back(pod);
    std::erase(out_, pod);
}

bool more_important(const View& ledger, PodIndex a, PodIndex b) {
    const auto& x = ledger.pod(a);
    const auto& y = ledger.pod(b);
    if (x.priority != y.priority) return x.priority > y.priority;
    if (x.started != y.started) return x.started < y.started;
    const auto by_name = std::tuple(x.ns(), x.name.view()) <=> std::tuple(y.ns(), y.name.view());
    // kube-scheduler asks the clock anew for each that has not started, so that the last of its list matters most.
    return x.started == ledger::kNotStarted ? by_name > 0 : by_name < 0;
}

std::vector<PodIndex> evictable(const Ask& ask, const View& ledger, Row row) {
    std::vector<PodIndex> out;
    for (const PodIndex index : ledger.at(row).pods) {
        if (may_go(ask, ledger, row, index)) out.push_back(index);
    }
    sort_by_importance(ledger, out);
    if (ask.shares) ask.shares->spare(ledger, *ask.spec, out);
    return out;
}

ByBudget split_by_budget(const View& ledger, const std::vector<PodIndex>& pods) {
    const auto& budgets = ledger.budgets().all();
    if (budgets.empty()) return {{}, pods};
    std::vector<int64_t> left;
    for (const auto& budget : budgets) left.push_back(budget->disruptions_allowed);
    ByBudget out;
    for (const PodIndex index : pods) {
        const auto& pod = ledger.pod(index);
        bool violated = false;
        for (size_t i = 0; i < budgets.size(); ++i) {
            if (!budgets[i]->covers(pod.ns(), pod.spec->labels)) continue;
            if (budgets[i]->already_disrupted(std::string_view(pod.name))) continue;
            violated = --left[i] < 0 || violated;
        }
        (violated ? out.violating : out.allowed).push_back(index);
    }
    return out;
}

RowAnswer victims_by_filters(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated,
                             Row row) {
    const std::vector<PodIndex> pods = evictable(ask, ledger, row);
    if (pods.empty()) return {std::nullopt, {std::string(kNoVictims)}};
    // What a reservation has left for its owners changes with who is charged to it.
    const bool charged = std::any_of(pods.begin(), pods.end(), [&](PodIndex p) { return ledger.pod(p).charged(); });
    const auto try_row = [&] {
        if (!charged) return filter(ask, ledger, profile, nominated, row, row + 1);
        return filter(ask_for(*ask.pod, ledger, ask.looks), ledger, profile, nominated, row, row + 1);
    };
    Lifted lifted(ledger);
    for (const PodIndex pod : pods) lifted.lift(pod);
    const Strikes without = try_row();
    if (!without.open(row)) return {std::nullopt, without.why(row)->reasons};
    Victims victims = choose_of(ledger, row, pods, lifted, [&] { return try_row().open(row); });
    if (victims.pods.empty()) return {};
    return {std::move(victims), {}};
}

std::optional<Victims> victims_until(const Ask& ask, Ledger& ledger, Row row, const std::function<bool()>& opens) {
    const std::vector<PodIndex> pods = evictable(ask, ledger, row);
    Lifted lifted(ledger);
    for (const PodIndex pod : pods) lifted.lift(pod);
    if (pods.empty() || !opens()) return std::nullopt;
    Victims victims = choose_of(ledger, row, pods, lifted, opens);
    if (victims.pods.empty()) return std::nullopt;
    return victims;
}

VictimsBySums::VictimsBySums(const Ask& ask, const View& ledger) : ask_(ask), ledger_(ledger) {
    ask.spec->requests.for_each([&](model::ResourceId id, int64_t amount) {
        if (amount <= 0) return;
        wants_.push_back(
            {id, amount, ledger.column(id),
             id == model::kPods ? "Too many pods" : fmt::format("Insufficient {}", model::resource_name(id))});
    });
}

std::vector<int64_t> VictimsBySums::slack_without(const std::vector<PodIndex>& pods, Row row) const {
    std::vector<int64_t> slack;
    for (const Want& want : wants_) {
        int64_t room = want.column ? want.column->allocatable[row] - want.column->used[row] : 0;
        for (const PodIndex pod : pods) room += ledger_.pod(pod).spec->requests.get(want.id);
        slack.push_back(base::saturating_subtract(room, want.amount));
    }
    return slack;
}

bool VictimsBySums::returns(PodIndex pod, std::vector<int64_t>& slack) const {
    const auto& requests = ledger_.pod(pod).spec->requests;
    for (size_t i = 0; i < wants_.size(); ++i) {
        if (requests.get(wants_[i].id) > slack[i]) return false;
    }
    for (size_t i = 0; i < wants_.size(); ++i) slack[i] -= requests.get(wants_[i].id);
    return true;
}

RowAnswer VictimsBySums::answer(Row row) const {
    const std::vector<PodIndex> pods = evictable(ask_, ledger_, row);
    if (pods.empty()) return {std::nullopt, {std::string(kNoVictims)}};
    std::vector<int64_t> slack = slack_without(pods, row);
    RowAnswer out;
    for (size_t i = 0; i < wants_.size(); ++i) {
        if (slack[i] < 0) out.reasons.push_back(wants_[i].reason);
    }
    if (!out.reasons.empty()) return out;
    Victims victims = choose(ledger_, row, pods, [&](PodIndex pod) { return returns(pod, slack); });
    if (!victims.pods.empty()) out.victims = std::move(victims);
    return out;
}

}  // namespace berth::sched
