#include "sched/credit.h"

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
        const auto& entry = ledger.reservation(index);
        if (entry.policy != model::AllocatePolicy::Default) {
            alone.push_back({{index}});
        } else {
            joint.from.push_back(index);
            once = once || entry.once;
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
    if (credit.matched.size() == 1) {
        credit.offers.push_back({credit.matched});
    } else {
        credit.offers = offers_of(credit.matched, ledger);
    }
    for (const ReservationIndex index : credit.matched) {
        const auto& ports = ledger.reservation(index).ports;
        credit.ports.insert(credit.ports.end(), ports.begin(), ports.end());
    }
    return credit;
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
    Few matched;
    for (const ReservationIndex index : ledger.at(row).reservations) {
        if (matches(ledger, index, pod, ask.wishes)) matched.push_back(index);
    }
    if (!matched.empty()) ask.credits[row] = credit_of(std::move(matched), ledger);
    return ask;
}

bool admits(const Credit& credit, const Drawing& drawing, const Ask& ask, const Ledger& ledger, Row row) {
    if (!drawing.enough || (ask.wishes.affinity && drawing.from.empty())) return false;
    return ask.spec->ports.empty() || !ledger.at(row).ports.clashes(ask.spec->ports, credit.ports);
}

}  // namespace berth::sched
