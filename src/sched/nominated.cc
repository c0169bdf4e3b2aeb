#include "sched/nominated.h"

#include <algorithm>

namespace berth::sched {
namespace {

using PodPtr = std::shared_ptr<const model::Pod>;

void sort_by_uid(std::vector<PodPtr>& pods) {
    std::sort(pods.begin(), pods.end(), [](const auto& a, const auto& b) { return a->meta.uid < b->meta.uid; });
}

}  // namespace

void Nominated::put(PodPtr pod, std::string_view node) {
    remove(pod->meta.uid);
    node_of_.emplace(pod->meta.uid, std::string(node));
    auto& here = by_node_[std::string(node)];
    here.push_back(std::move(pod));
    sort_by_uid(here);
}

void Nominated::remove(std::string_view uid) {
    const auto found = node_of_.find(uid);
    if (found == node_of_.end()) return;
    const auto here = by_node_.find(found->second);
    std::erase_if(here->second, [&](const auto& pod) { return pod->meta.uid == uid; });
    if (here->second.empty()) by_node_.erase(here);
    node_of_.erase(found);
}

std::vector<PodPtr> Nominated::before(const Ask& ask, std::string_view node) const {
    const auto found = by_node_.find(node);
    if (found == by_node_.end()) return {};
    std::vector<PodPtr> out;
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(out), [&](const auto& pod) {
        const bool itself = ask.pod && ask.pod->meta.uid == pod->meta.uid;
        return !itself && pod->spec->priority >= ask.spec->priority;
    });
    return out;
}

std::vector<PodPtr> Nominated::behind(const Ask& ask, std::string_view node) const {
    const auto found = by_node_.find(node);
    if (found == by_node_.end()) return {};
    std::vector<PodPtr> out;
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(out),
                 [&](const auto& pod) { return pod->spec->priority < ask.spec->priority; });
    return out;
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
        ledger.assume(*pod, row, {});
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
        if (row < begin || row >= end) continue;
        const auto pods = nominated.before(ask, node);
        if (pods.empty()) continue;
        const Overlay overlay(ledger, row, pods);
        const Strikes with = filter(ask, ledger, profile, row, row + 1);
        if (!with.open(row)) strikes.overrule(row, with.why(row));
    }
    return strikes;
}

bool yields(const Ask& ask, Ledger& ledger, const Profile& profile, const Nominated& nominated) {
    if (nominated.empty()) return false;
    for (const auto& node : nominated.nodes()) {
        const Row row = ledger.row_of(node);
        if (row == ledger::kNoRow) continue;
        const auto pods = nominated.before(ask, node);
        if (pods.empty() || !filter(ask, ledger, profile, row, row + 1).open(row)) continue;
        const Overlay overlay(ledger, row, pods);
        if (!filter(ask, ledger, profile, row, row + 1).open(row)) return true;
    }
    return false;
}

}  // namespace berth::sched
