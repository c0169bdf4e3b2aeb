#include "sched/ask.h"

#include <algorithm>

#include "sched/match.h"

namespace berth::sched {
namespace {

// Aligned and Restricted ones are drawn from alone, and come first. Default ones are drawn from jointly, but when all
// of them are reusable only one is used.
std::vector<Offer> offers_of(const std::vector<ReservationIndex>& matched, const Ledger& ledger) {
    std::vector<Offer> alone;
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

int64_t Offer::remaining(const Ledger& ledger, model::ResourceId id) const {
    int64_t sum = 0;
    for (const ReservationIndex index : from) {
        const int64_t part = ledger.remaining(index, id);
        if (id == model::kPods) {
            sum = std::max(sum, part);
        } else if (__builtin_add_overflow(sum, part, &sum)) {
            return INT64_MAX;
        }
    }
    return sum;
}

Ask ask_for(const model::Pod& pod, const Ledger& ledger) {
    Ask ask;
    ask.spec = pod.spec.get();
    ask.pod = &pod;
    auto wishes = model::read_wishes(pod.meta.annotations);
    if (!wishes) {
        ask.fault = wishes.error().message;
        return ask;
    }
    ask.wishes = std::move(*wishes);
    ledger.owner_index().candidates(model::identity_of(pod), [&](ReservationIndex index) {
        if (!matches(ledger, index, pod, ask.wishes)) return;
        auto& matched = ask.credits[ledger.reservation(index).row].matched;
        if (std::find(matched.begin(), matched.end(), index) == matched.end()) matched.push_back(index);
    });
    for (auto& [row, credit] : ask.credits) {
        credit.offers = offers_of(credit.matched, ledger);
        for (const ReservationIndex index : credit.matched) {
            const auto& ports = ledger.reservation(index).ports;
            credit.ports.insert(credit.ports.end(), ports.begin(), ports.end());
        }
    }
    return ask;
}

Ask ask_for(const model::Reservation& reservation) {
    Ask ask;
    ask.spec = reservation.spec.get();
    ask.reservation = &reservation;
    return ask;
}

}  // namespace berth::sched
