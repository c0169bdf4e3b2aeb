#include "sched/credit.h"

#include "sched/match.h"

namespace berth::sched {
Credit credit_of(Few matched, const View& ledger) {
    Credit credit{std::move(matched), {}, nullptr};
    for (const ReservationIndex index : credit.matched) {
        const auto& ports = ledger.reservation(index).ports;
        credit.ports.insert(credit.ports.end(), ports.begin(), ports.end());
    }
    return credit;
}

Ask ask_on(const model::Pod& pod, const View& ledger, Row row) {
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

bool admits(const Credit& credit, const Drawing& drawing, const Ask& ask, const View& ledger, Row row) {
    if (!drawing.enough() || ledger.at(row).unreadable > 0) return false;
    if (ask.wishes.affinity && drawing.charges.empty()) return false;
    return ask.spec->ports.empty() || !ledger.at(row).ports.clashes(ask.spec->ports, credit.ports);
}

}  // namespace berth::sched
