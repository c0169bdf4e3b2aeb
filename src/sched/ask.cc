#include "sched/ask.h"

#include <algorithm>

#include "sched/credit.h"
#include "sched/match.h"

namespace berth::sched {

Credit& Credits::operator[](Row row) {
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), row, kByRow);
    if (found != entries_.end() && found->first == row) return found->second;
    const auto place = found - entries_.begin();
    entries_.emplace_back().first = row;
    std::rotate(entries_.begin() + place, entries_.end() - 1, entries_.end());
    return entries_[static_cast<size_t>(place)].second;
}

Ask ask_for(const model::Pod& pod, const View& ledger, uint64_t* looks) {
    Ask ask;
    ask.looks = looks;
    ask.spec = pod.spec.get();
    ask.pod = &pod;
    if (pod.uses_resource_claims) {
        ask.fault = "the pod has spec.resourceClaims, which Berth does not allocate";
        return ask;
    }
    auto wishes = model::read_wishes(pod.meta.annotations);
    if (!wishes) {
        ask.fault = wishes.error().message;
        return ask;
    }
    ask.wishes = std::move(*wishes);
    ask.fault = pod.spec->cores.fault;
    if (!ask.fault.empty()) return ask;
    std::vector<std::pair<Row, ReservationIndex>> found;
    ledger.owner_index().candidates(model::identity_of(pod.meta), [&](ReservationIndex index) {
        if (matches(ledger, index, pod, ask.wishes)) found.emplace_back(ledger.reservation(index).row, index);
    });
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (const auto& [row, index] : found) ask.credits[row].matched.push_back(index);
    for (auto& [row, credit] : ask.credits) credit = credit_of(std::move(credit.matched), ledger);
    return ask;
}

Ask ask_for(const model::Reservation& reservation, uint64_t* looks) {
    Ask ask;
    ask.looks = looks;
    ask.spec = reservation.spec.get();
    ask.reservation = &reservation;
    return ask;
}

}  // namespace berth::sched
