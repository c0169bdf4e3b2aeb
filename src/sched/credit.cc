#include "sched/credit.h"

#include <algorithm>

#include "sched/draw.h"
#include "sched/match.h"

namespace berth::sched {
namespace {

// Aligned and Restricted ones are drawn from alone, and come first. Default ones are drawn from jointly, but when all
// of them are reusable only one is used.
absl::InlinedVector<Offer, 1> offers_of(const Few& matched, const Ledger& ledger) {
    absl::InlinedVector<Offer, 1> alone;
    Offer joint;
    bool once = false;
    for (const ReservationIndex index : matched) {
        const auto& object = *ledger.reservation(index).object;
        if (object.policy != model::AllocatePolicy::Default) {
            alone.push_back({{index}});
        } else {
            joint.from.push_back(index);
            once = once || object.allocate_once;
        }
    }
    if (!alone.empty()) return alone;
    if (once) return {joint};
    for (const ReservationIndex index : joint.from) alone.push_back({{index}});
    return alone;
}

}  // namespace

Credit credit_of(Few matched, const Ledger& ledger) {
    Credit credit{std::move(matched), {}, {}};
    credit.offers = offers_of(credit.matched, ledger);
    for (const ReservationIndex index : credit.matched) {
        const auto& ports = ledger.reservation(index).ports;
        credit.ports.insert(credit.ports.end(), ports.begin(), ports.end());
    }
    return credit;
}

bool look_only_at(Ask& ask, const Ledger& ledger, Row row) {
    Few matched;
    for (const ReservationIndex index : ledger.at(row).reservations) {
        if (matches(ledger, index, *ask.pod, ask.wishes)) matched.push_back(index);
    }
    ask.credits.clear();
    if (matched.empty()) return false;
    ask.credits[row] = credit_of(std::move(matched), ledger);
    return true;
}

Ask ask_on(const model::Pod& pod, const Ledger& ledger, Row row) {
    Ask ask;
    ask.spec = pod.spec.get();
    ask.pod = &pod;
    if (ledger.at(row).reservations.empty()) return ask;
    auto wishes = model::read_wishes(pod.meta.annotations);
    if (!wishes) {
        ask.fault = wishes.error().message;
        return ask;
    }
    ask.wishes = std::move(*wishes);
    look_only_at(ask, ledger, row);
    return ask;
}

bool admits_with_credit(const Ask& ask, const Ledger& ledger, Row row) {
    const Credit& credit = *ask.credit(row);
    const auto& entry = ledger.at(row);
    if (entry.unreadable > 0) return false;
    if (!ask.spec->ports.empty() && entry.ports.clashes(ask.spec->ports, credit.ports)) return false;
    const bool enough = std::any_of(credit.offers.begin(), credit.offers.end(), [&](const Offer& offer) {
        return fits(offer, ask, ledger, row) && too_little(offer, ask, ledger).empty();
    });
    return enough && (!ask.wishes.affinity || !nominate(ask, ledger, row).empty());
}

}  // namespace berth::sched
