#include "sched/second_look.h"

#include <algorithm>
#include <array>

#include "base/saturating.h"
#include "sched/credit.h"
#include "sched/plugins/numa.h"
#include "sched/plugins/registry.h"
#include "sched/victims.h"
#include "sched/which.h"

namespace berth::sched {
namespace {

// Those that say by themselves whether somebody else has what the pod was given.
constexpr std::array kOfWhatIsHeld{PluginId::NodePorts, PluginId::VolumeRestrictions, PluginId::NodeVolumeLimits};

const Filter* filter_of(const Profile& profile, PluginId id) {
    const auto found = std::find_if(profile.filters.begin(), profile.filters.end(),
                                    [&](const auto& filter) { return filter->plugin() == id; });
    return found == profile.filters.end() ? nullptr : found->get();
}

// The pod's question on its row, bound to what it is charged.
Ask settled(const model::Pod& pod, const View& ledger, Row row, const ledger::Charges& charges) {
    Ask ask = ask_on(pod, ledger, row);
    Few matched;
    if (const Credit* credit = ask.credit(row)) matched = credit->matched;
    for (const auto& charge : charges) {
        if (std::find(matched.begin(), matched.end(), charge.reservation) == matched.end())
            matched.push_back(charge.reservation);
    }
    if (matched.empty()) return ask;
    ask.credits[row] = credit_of(std::move(matched), ledger);
    ask.credits[row].promised = std::make_shared<const ledger::Charges>(charges);
    return ask;
}

bool has_parts(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges,
               const ledger::WhichPtr& which, const Profile& profile) {
    const auto cores = which ? static_cast<int64_t>(which->cores.cpus.size()) : 0;
    if (filter_of(profile, PluginId::NodeNUMAResource) &&
        !plugins::judge_amplified(*ask.spec, cores, ledger, row, charges).empty())
        return false;
    return !which || may_have(*which, ask, ledger, row, charges);
}

// What the row lacks for the pod, which does not stand there now; nullopt: it cannot have what it was given.
std::optional<model::Resources> lacking_for(const Ask& ask, const View& ledger, Row row, const ledger::Charges& charges,
                                            const ledger::WhichPtr& which, const Profile& profile) {
    Strikes strikes(ledger, row, row + 1);
    for (const PluginId id : kOfWhatIsHeld) {
        if (const Filter* filter = filter_of(profile, id)) filter->strike(ask, ledger, strikes);
    }
    if (!strikes.open(row) || !has_parts(ask, ledger, row, charges, which, profile)) return std::nullopt;
    if (charges.empty()) return ledger.lacking(ask.spec->requests, charges, row);
    if (ledger.at(row).unreadable > 0) return std::nullopt;
    Drawing drawing = draw_on(*ask.credit(row), ask, ledger, row);
    if (!drawing.withheld.empty()) return std::nullopt;
    return std::move(drawing.lacking);
}

// The node equation, without those that wait for room: they came after the pod, and are in its way no more than in that
// of one that runs there.
bool equation_holds(const View& ledger, Row row, model::ResourceId id) {
    int64_t room = ledger.free(row, id);
    for (const ReservationIndex index : ledger.at(row).reservations) {
        const auto& entry = ledger.reservation(index);
        if (entry.waiting()) room = base::saturating_add(room, entry.allocatable.get(id));
    }
    return room >= 0;
}

}  // namespace

bool still_has(const model::Pod& pod, Ledger& ledger, const Profile& profile) {
    const PodIndex index = ledger.find_pod(pod.meta.uid);
    if (index == ledger::kNone || ledger.pod(index).row == ledger::kNoRow) return false;
    const Row row = ledger.pod(index).row;
    const ledger::Charges charges = ledger.pod(index).charges();
    const ledger::WhichPtr which = ledger.pod(index).which;
    std::optional<model::Resources> lacks;
    {
        Lifted lifted(ledger);
        lifted.lift(index);
        lacks = lacking_for(settled(pod, ledger, row, charges), ledger, row, charges, which, profile);
    }
    const Filter* fit = filter_of(profile, kFit);
    if (!lacks || lacks->empty() || !fit) return lacks.has_value();
    bool holds = true;
    lacks->for_each([&](model::ResourceId id, int64_t) {
        holds = holds && (plugins::ignores(*fit, id) || equation_holds(ledger, row, id));
    });
    return holds;
}

}  // namespace berth::sched
