#include "ledger/ended_owners.h"

#include <algorithm>

#include "model/reservation_rules.h"

namespace berth::ledger {

void EndedOwners::put(const model::Pod& pod, const model::Links& links) {
    remove(pod.meta.uid);
    Ended ended{pod.meta, pod.node, {}};
    if (links.allocated) ended.links.push_back(links.allocated->uid);
    for (const auto& draw : links.draws) ended.links.push_back(draw.uid);
    for (const auto& uid : ended.links) by_reservation_[uid].push_back(pod.meta.uid);
    pods_.emplace(pod.meta.uid, std::move(ended));
}

void EndedOwners::remove(std::string_view pod) {
    if (pods_.empty()) return;
    const auto found = pods_.find(pod);
    if (found == pods_.end()) return;
    for (const auto& uid : found->second.links) {
        const auto named = by_reservation_.find(uid);
        std::erase(named->second, pod);
        if (named->second.empty()) by_reservation_.erase(named);
    }
    pods_.erase(found);
}

bool EndedOwners::had(const model::Reservation& reservation, std::string_view node) const {
    const auto named = by_reservation_.find(reservation.meta.uid);
    if (named == by_reservation_.end()) return false;
    return std::any_of(named->second.begin(), named->second.end(), [&](const std::string& uid) {
        const Ended& pod = pods_.find(uid)->second;
        return pod.node == node && model::owned_by(reservation, model::identity_of(pod.meta));
    });
}

}  // namespace berth::ledger
