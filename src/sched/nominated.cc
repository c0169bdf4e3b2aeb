#include "sched/nominated.h"

#include <algorithm>

#include "model/room.h"
#include "sched/credit.h"

namespace berth::sched {
namespace {

using PodPtr = std::shared_ptr<const model::Pod>;

void sort_by_uid(std::vector<PodPtr>& pods) {
    std::sort(pods.begin(), pods.end(), [](const auto& a, const auto& b) { return a->meta.uid < b->meta.uid; });
}

bool is_itself(const model::Pod& pod, const Ask& ask) {
    if (ask.reservation) return model::room_owner(*ask.reservation) == pod.meta.uid;
    return ask.pod && ask.pod->meta.uid == pod.meta.uid;
}

bool draws_on(const model::Pod& pod, const Ledger& ledger, Row row) {
    return !ledger.at(row).reservations.empty() && ask_on(pod, ledger, row).credit(row) != nullptr;
}

// What it will draw once those in its way are gone. Before that nothing suffices, and the drawing that lacks least has
// to stand for the one that will.
ledger::Charges expected_charges(const model::Pod& pod, const Ledger& ledger, Row row) {
    if (ledger.at(row).reservations.empty()) return {};
    return charges_on(ask_on(pod, ledger, row), ledger, row);
}

// What an ask finds while others draw: what it matched before may be taken.
Strikes filter_again(const Ask& ask, const Ledger& ledger, const Profile& profile, Row row, const Overlay& overlay) {
    if (!ask.pod || !overlay.draws()) return filter(ask, ledger, profile, row, row + 1);
    return filter(ask_for(*ask.pod, ledger), ledger, profile, row, row + 1);
}

}  // namespace

void Nominated::put(PodPtr pod, std::string_view node) {
    const auto known = waits_.find(pod->meta.uid);
    const uint64_t turn = known != waits_.end() && known->second.node == node ? known->second.turn : ++turns_;
    remove(pod->meta.uid);
    waits_.emplace(pod->meta.uid, Wait{std::string(node), turn});
    auto& here = by_node_[std::string(node)];
    here.push_back(std::move(pod));
    sort_by_uid(here);
}

void Nominated::remove(std::string_view uid) {
    const auto found = waits_.find(uid);
    if (found == waits_.end()) return;
    const auto here = by_node_.find(found->second.node);
    std::erase_if(here->second, [&](const auto& pod) { return pod->meta.uid == uid; });
    if (here->second.empty()) by_node_.erase(here);
    waits_.erase(found);
}

std::vector<PodPtr> Nominated::those(const Ask& ask, const Ledger& ledger, Row row, bool yields) const {
    const auto found = by_node_.find(ledger.name(row));
    if (found == by_node_.end()) return {};
    std::vector<PodPtr> out;
    const auto own = ask.pod ? waits_.find(ask.pod->meta.uid) : waits_.end();
    const bool waits_too = own != waits_.end() && own->second.node == found->first && draws_on(*ask.pod, ledger, row);
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(out), [&](const auto& pod) {
        if (is_itself(*pod, ask)) return false;
        if (waits_too && draws_on(*pod, ledger, row)) {
            return (waits_.find(pod->meta.uid)->second.turn < own->second.turn) == yields;
        }
        const bool first = ask.reservation || pod->spec->priority >= ask.spec->priority || draws_on(*pod, ledger, row);
        return first == yields;
    });
    return out;
}

std::vector<PodPtr> Nominated::before(const Ask& ask, const Ledger& ledger, Row row) const {
    return those(ask, ledger, row, true);
}

std::vector<PodPtr> Nominated::behind(const Ask& ask, const Ledger& ledger, Row row) const {
    return those(ask, ledger, row, false);
}

std::vector<std::string> Nominated::nodes() const {
    std::vector<std::string> out;
    for (const auto& [node, pods] : by_node_) out.push_back(node);
    std::sort(out.begin(), out.end());
    return out;
}

// One that is placed already counts as it is.
Overlay::Overlay(Ledger& ledger, Row row, const std::vector<PodPtr>& pods) : ledger_(ledger) {
    for (const auto& pod : pods) {
        if (ledger.find_pod(pod->meta.uid) != ledger::kNone) continue;
        const ledger::Charges charges = expected_charges(*pod, ledger, row);
        draws_ = draws_ || !charges.empty();
        ledger.assume(*pod, row, charges);
        uids_.push_back(pod->meta.uid);
    }
}

Overlay::~Overlay() {
    for (const auto& uid : uids_) ledger_.remove_pod(uid);
}

Strikes filter(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated, Row begin, Row end) {
    Strikes strikes = filter(ask, ledger, profile, begin, end);
    if (nominated.empty()) return strikes;
    for (const auto& node : nominated.nodes()) {
        const Row row = ledger.row_of(node);
        if (row == ledger::kNoRow || row < begin || row >= end) continue;
        const auto pods = nominated.before(ask, ledger, row);
        if (pods.empty()) continue;
        const Overlay overlay(ledger, row, pods);
        const Strikes with = filter_again(ask, ledger, profile, row, overlay);
        if (!with.open(row)) strikes.overrule(row, with.why(row));
    }
    return strikes;
}

bool yields(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated) {
    if (nominated.empty()) return false;
    for (const auto& node : nominated.nodes()) {
        const Row row = ledger.row_of(node);
        if (row == ledger::kNoRow) continue;
        const auto pods = nominated.before(ask, ledger, row);
        if (pods.empty() || !filter(ask, ledger, profile, row, row + 1).open(row)) continue;
        const Overlay overlay(ledger, row, pods);
        if ((overlay.draws() && ask.credit(row)) || !filter(ask, ledger, profile, row, row + 1).open(row)) return true;
    }
    return false;
}

}  // namespace berth::sched
