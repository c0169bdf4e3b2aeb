#include "share/reclaiming.h"

#include <algorithm>
#include <set>

namespace berth::share {
namespace {

constexpr base::Duration kSeenGoing = std::chrono::seconds(60);
constexpr base::Duration kRefusedFor = std::chrono::seconds(10);
constexpr base::Duration kKeptFor = std::chrono::minutes(5);  // room for a claim
constexpr base::Duration kStuckAfter = std::chrono::minutes(5);
constexpr base::Duration kMinute = std::chrono::minutes(1);

// What could let a pod start that did not: other nodes, or other sizes of them.
uint64_t state_of(const std::vector<SceneNode>& nodes) {
    uint64_t hash = 0xcbf29ce484222325ULL;
    const auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3ULL; };
    for (const auto& node : nodes) {
        for (const char c : node.name) mix(static_cast<unsigned char>(c));
        node.allocatable.for_each([&](ResourceId, int64_t amount) { mix(static_cast<uint64_t>(amount)); });
        mix(node.cordoned ? 2 : 1);
        mix(node.lost ? 2 : 1);
    }
    return hash;
}

}  // namespace

void Reclaiming::remember(const std::string& consumer, std::optional<base::Time> overused_since,
                          std::optional<base::Time> deadline) {
    if (overused_since || deadline) standings_[consumer] = {overused_since, {}, deadline, {}};
}

void Reclaiming::prepare(Scene& scene, base::Time now) {
    std::erase_if(refused_, [&](const auto& entry) { return entry.second.until <= now; });
    std::erase_if(evictions_, [&](base::Time at) { return now - at >= kMinute; });
    nodes_ = state_of(scene.nodes);
    look_at_pods(scene, now);
    std::map<std::string_view, uint32_t> nodes;
    for (uint32_t i = 0; i < scene.nodes.size(); ++i) {
        if (!scene.nodes[i].lost) nodes.emplace(scene.nodes[i].name, i);
    }
    for (auto& pod : scene.pods) {
        if (!pod.placed) look_at_claim(pod, nodes, nodes_);
    }
}

// Of those that are gone, or were bound, nothing need be known.
void Reclaiming::look_at_pods(Scene& scene, base::Time now) {
    std::set<std::string_view> placed, waiting;
    for (auto& pod : scene.pods) {
        (pod.placed ? placed : waiting).insert(pod.uid);
        if (!pod.placed) continue;
        if (const auto going = going_.find(pod.uid); going != going_.end() && !pod.terminating) {
            if (going->second.until <= now) {
                going_.erase(going);
            } else {
                pod.terminating = true;
            }
        }
        if (refused_.contains(pod.uid)) pod.kept = true;
    }
    std::erase_if(going_, [&](const auto& entry) { return !placed.contains(entry.first); });
    std::erase_if(refused_, [&](const auto& entry) { return !placed.contains(entry.first); });
    std::erase_if(served_,
                  [&](const auto& entry) { return !waiting.contains(entry.first) || entry.second.until <= now; });
    std::erase_if(stuck_, [&](const auto& entry) { return !waiting.contains(entry.first); });
}

void Reclaiming::look_at_claim(ScenePod& pod, const std::map<std::string_view, uint32_t>& nodes, uint64_t state) {
    if (const auto served = served_.find(pod.uid); served != served_.end()) {
        const auto node = nodes.find(served->second.node);
        if (node == nodes.end()) {
            served_.erase(served);  // its room went with the node
        } else {
            pod.served = true;
            pod.earmark = node->second;
        }
    }
    const auto stuck = stuck_.find(pod.uid);
    if (stuck == stuck_.end()) return;
    if (stuck->second.nodes != state) {
        stuck_.erase(stuck);
    } else if (stuck->second.parked) {
        pod.may_stand.clear();
    }
}

std::vector<Victim> Reclaiming::due(const Scene& scene, const Answer& answer, base::Time now) {
    next_.reset();
    stand(scene, answer, now);
    see_stuck(scene, answer, now);
    std::vector<Victim> out;
    std::map<std::string_view, size_t> taken;
    std::set<uint32_t> waits;  // nodes where an earlier claim's victims stay for now: who follows counts on their going
    for (size_t begin = 0; begin < answer.victims.size();) {
        size_t end = begin;
        while (end < answer.victims.size() && answer.victims[end].claim == answer.victims[begin].claim) ++end;
        const std::vector<Victim> group(answer.victims.begin() + static_cast<ptrdiff_t>(begin),
                                        answer.victims.begin() + static_cast<ptrdiff_t>(end));
        begin = end;
        const uint32_t node = scene.pods[group.front().pod].node;
        const bool ripe = std::all_of(group.begin(), group.end(), [&](const Victim& victim) {
            return *standings_.find(scene.pods[victim.pod].ns)->second.deadline <= now;
        });
        if (!ripe || waits.contains(node) || !within_limits(group, scene, taken, out.size(), now)) {
            waits.insert(node);
            continue;
        }
        const std::string& claim = scene.pods[group.front().claim].uid;
        served_[claim] = {scene.nodes[node].name, now + kKeptFor};
        for (const Victim& victim : group) {
            const ScenePod& pod = scene.pods[victim.pod];
            ++taken[pod.ns];
            going_[pod.uid] = {claim, now + kSeenGoing};
            namespaces_[pod.uid] = pod.ns;
            evictions_.push_back(now);
            out.push_back(victim);
        }
    }
    std::erase_if(namespaces_, [&](const auto& entry) { return !going_.contains(entry.first); });
    return out;
}

// Since when others want something of whom. A cycle in which nobody does ends it.
void Reclaiming::stand(const Scene& scene, const Answer& answer, base::Time now) {
    std::map<std::string_view, Resources> planned;
    for (const auto& victim : answer.victims) planned[scene.pods[victim.pod].ns].add(scene.pods[victim.pod].size);
    std::map<std::string_view, base::Duration> graces;
    for (const auto& consumer : scene.consumers) {
        if (consumer.grace) graces.emplace(consumer.meta.name, *consumer.grace);
    }
    Overuses now_standing;
    for (const auto& account : answer.accounts) {
        const auto plan = planned.find(account.name);
        const bool wanted = plan != planned.end() || !account.reclaim.empty();
        if (!account.overused && !wanted) continue;
        const auto before = standings_.find(account.name);
        Overuse& standing = now_standing[account.name];
        if (before != standings_.end()) standing = before->second;
        if (!account.overused) {
            standing.overused_since.reset();
        } else if (!standing.overused_since) {
            standing.overused_since = now;
        }
        standing.amounts = account.reclaim;
        if (plan != planned.end()) standing.amounts.max(plan->second);
        if (!wanted) {
            standing.wanted_since.reset();
            standing.deadline.reset();
            continue;
        }
        const auto own = graces.find(account.name);
        const base::Duration grace = own == graces.end() ? grace_ : own->second;
        if (!standing.wanted_since)
            standing.wanted_since = standing.deadline ? std::min(now, *standing.deadline + -grace) : now;
        standing.deadline = *standing.wanted_since + grace;
        if (*standing.deadline > now && (!next_ || *standing.deadline < *next_)) next_ = standing.deadline;
    }
    standings_ = std::move(now_standing);
}

// A pod that may start and has room, and does not for so long, asks for nothing until something changes: somebody else
// would have to give for it in vain.
void Reclaiming::see_stuck(const Scene& scene, const Answer& answer, base::Time now) {
    std::set<std::string_view> roomy;
    for (const auto& room : answer.rooms) {
        const std::string& uid = scene.pods[room.pod].uid;
        roomy.insert(uid);
        const auto [found, fresh] = stuck_.try_emplace(uid, Stuck{now, nodes_});
        Stuck& stuck = found->second;
        if (!stuck.parked && now - stuck.since >= kStuckAfter) stuck.parked = true;
        const base::Time at = stuck.since + kStuckAfter;
        if (!stuck.parked && (!next_ || at < *next_)) next_ = at;
    }
    std::erase_if(stuck_, [&](const auto& entry) { return !entry.second.parked && !roomy.contains(entry.first); });
}

// A claim that is too large for a limit goes alone: else it never would.
bool Reclaiming::within_limits(const std::vector<Victim>& group, const Scene& scene,
                               const std::map<std::string_view, size_t>& taken, size_t total, base::Time now) const {
    const size_t recent = static_cast<size_t>(
        std::count_if(evictions_.begin(), evictions_.end(), [&](base::Time at) { return now - at < kMinute; }));
    if (recent > 0 && recent + group.size() > limits_.per_minute) return false;
    if (total == 0) return true;
    if (total + group.size() > limits_.per_cycle) return false;
    std::map<std::string_view, size_t> more = taken;
    return std::all_of(group.begin(), group.end(),
                       [&](const Victim& victim) { return ++more[scene.pods[victim.pod].ns] <= limits_.per_consumer; });
}

void Reclaiming::refused(const std::string& uid, const std::string& why, base::Time now) {
    const auto ns = namespaces_.find(uid);
    refused_[uid] = {ns == namespaces_.end() ? "" : ns->second, why, now + kRefusedFor};
    failed(uid);
}

// Somebody else has to go for the claim; the room that is there already is no reason to go elsewhere.
void Reclaiming::failed(const std::string& uid) {
    const auto going = going_.find(uid);
    if (going == going_.end()) return;
    served_.erase(going->second.claim);
    going_.erase(going);
}

std::map<std::string, std::string> Reclaiming::refusals() const {
    std::map<std::string, std::string> out;
    for (const auto& [uid, refused] : refused_) out.emplace(refused.ns, refused.why);
    return out;
}

std::optional<base::Time> Reclaiming::next() const {
    std::optional<base::Time> out = next_;
    const auto also = [&](base::Time at) {
        if (!out || at < *out) out = at;
    };
    for (const auto& [uid, refused] : refused_) also(refused.until);
    if (!evictions_.empty() && evictions_.size() >= limits_.per_minute) also(evictions_.front() + kMinute);
    return out;
}

}  // namespace berth::share
