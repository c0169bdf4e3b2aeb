// What must hold in a town.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/allocated.h"
#include "town.h"

namespace berth::reservations {

Town::Amounts Town::amounts_of(const model::Resources& from) {
    return {from.get(model::kCpu), from.get(model::kMemory), 0};
}

// The node equation, from the stored objects alone; waiting ones are left out.
Town::Amounts Town::used_on(const std::string& node) const {
    std::map<std::string, Amounts> charged;
    Amounts used{};
    const auto live = [&](const std::string& uid) {
        return std::any_of(reservations_.begin(), reservations_.end(), [&](const auto& entry) {
            return entry.second->meta.uid == uid && model::holds_room(*entry.second) && entry.second->node == node;
        });
    };
    const auto add = [&](const std::string& uid, const Amounts& amounts) {
        Amounts& to = live(uid) ? charged[uid] : used;
        for (size_t i = 0; i < to.size(); ++i) to[i] += amounts[i];
    };
    for (const auto& [name, pod] : pods_) {
        if (pod.node != node || pod.terminal()) continue;
        const auto links = model::read_links(pod.meta.annotations).value();
        const std::string first = links.allocated ? links.allocated->uid : "";
        Amounts rest = amounts_of(pod.spec->requests);
        rest[2] = 1;
        for (const auto& draw : links.draws) {  // it may have been resized since: it has no more than it asks for
            Amounts part = amounts_of(draw.amount);
            for (size_t i = 0; i < rest.size(); ++i) {
                part[i] = std::min(part[i], rest[i]);
                rest[i] -= part[i];
            }
            add(draw.uid, part);
        }
        add(first, rest);
    }
    for (const auto& [name, object] : reservations_) {
        if (object->node != node || !model::holds_room(*object)) continue;
        Amounts reserved = amounts_of(object->allocatable);
        reserved[2] = 1;
        if (object->phase == model::ReservationPhase::Waiting) reserved = {};
        for (size_t i = 0; i < used.size(); ++i) used[i] += std::max(reserved[i], charged[object->meta.uid][i]);
    }
    return used;
}

Town::Amounts Town::has(const model::Node& node) const {
    Amounts out = amounts_of(node.allocatable);
    out[2] = node.allocatable.get(model::kPods);
    if (node.meta.annotations.has(model::kNodeReservation)) out[0] -= 2000;
    return out;
}

// Others may make a node smaller than what is on it. Until that has gone nothing comes.
void Town::note_use() {
    for (const auto& node : nodes_) used_before_[node->meta.name] = used_on(node->meta.name);
}

void Town::check_nodes() {
    for (const auto& stored : nodes_) {
        const std::string& node = stored->meta.name;
        const Amounts used = used_on(node), has = this->has(*stored);
        constexpr const char* kNames[] = {"cpu", "memory", "slots"};
        for (size_t i = 0; i < used.size(); ++i) {
            if (!fortune_.shifts && i == 1) continue;
            EXPECT_LE(used[i], fortune_.shifts ? std::max(has[i], used_before_[node][i]) : has[i])
                << node << ": " << kNames[i];
        }
        if (fortune_.cores) check_cores(node);
        if (fortune_.gpus) check_gpus(node);
    }
    note_use();
}

// Whoever asks for cores has as many as it asks for, and nobody else has them: no pod, and no reservation that does not
// pay for it.
void Town::check_cores(const std::string& node) const {
    std::map<int32_t, std::string> holder, reserver;
    for (const auto& [name, pod] : pods_) {
        if (pod.node != node) continue;
        const auto cpus = model::read_which(pod.meta.annotations).cores.cpus;
        const int64_t wanted = pod.spec->cores.own_cores ? pod.spec->requests.get(model::kCpu) / 1000 : 0;
        EXPECT_EQ(static_cast<int64_t>(cpus.size()), wanted) << name;
        for (const auto cpu : cpus) {
            EXPECT_TRUE(holder.emplace(cpu, name).second) << "CPU " << cpu << ": " << name << " and " << holder[cpu];
        }
    }
    for (const auto& [name, object] : reservations_) {
        if (object->node != node || object->phase != model::ReservationPhase::Available) continue;
        for (const auto cpu : object->which.cores.cpus) {
            EXPECT_TRUE(reserver.emplace(cpu, name).second)
                << "CPU " << cpu << ": " << name << " and " << reserver[cpu];
            if (!holder.contains(cpu)) continue;
            const auto named = model::read_links(pods_.at(holder[cpu]).meta.annotations)->named();
            EXPECT_TRUE(
                std::any_of(named.begin(), named.end(), [&](const auto& link) { return link.uid == object->meta.uid; }))
                << holder[cpu] << " has CPU " << cpu << ", which " << name << " holds";
        }
    }
}

// Of each GPU, in percents: what pods have, and what reservations have left when their owners have had theirs, those of
// one reservation before those who draw from several.
void Town::check_gpus(const std::string& node) const {
    std::map<int32_t, int64_t> used;
    std::map<std::pair<std::string, int32_t>, int64_t> left;  // by the reservation's uid
    for (const auto& [name, object] : reservations_) {
        if (object->node != node || object->phase != model::ReservationPhase::Available) continue;
        for (const auto& share : object->which.devices) left[{object->meta.uid, share.minor}] = share.amounts.ratio;
    }
    for (const bool alone : {true, false}) {
        for (const auto& [name, pod] : pods_) {
            if (pod.node != node || pod.terminal()) continue;
            const auto named = model::read_links(pod.meta.annotations)->named();
            if ((named.size() < 2) != alone) continue;
            int64_t has = 0;
            for (const auto& share : model::read_which(pod.meta.annotations).devices) {
                has += share.amounts.ratio;
                used[share.minor] += share.amounts.ratio;
                int64_t rest = share.amounts.ratio;
                for (const auto& link : named) {
                    const auto from = left.find({link.uid, share.minor});
                    const int64_t part = from == left.end() ? 0 : std::min(rest, from->second);
                    if (part > 0) from->second -= part;
                    rest -= part;
                }
            }
            EXPECT_EQ(has, pod.spec->requests.get(model::device_resources().gpu)) << name;
        }
    }
    for (const auto& [key, amount] : left) used[key.second] += amount;
    for (const auto& [minor, percent] : used) EXPECT_LE(percent, model::kWholeDevice) << node << ": GPU " << minor;
}

// Nothing more comes, and of two schedulers a lease leaves one. When nothing has happened for longer than the longest
// backoff, whoever can be placed is, and who had others evicted has their room.
void Town::settle() {
    resting_ = true;
    if (schedulers_.size() > 1) {
        schedulers_.pop_back();
        std::erase_if(outbox_, [](const Sent& sent) { return sent.by > 0; });
    }
    int quiet = 0;
    for (int round = 0; round < 40 && quiet < 3; ++round) {
        const uint64_t before = revision_;
        for (int i = 0; i < 3; ++i) {
            decide(0, 1000);  // everybody has his turn
            send(1000);
            reconcile();
        }
        end_pods();
        quiet = revision_ == before && outbox_.empty() ? quiet + 1 : 0;
        clock_.advance(std::chrono::seconds(5));
    }
    EXPECT_EQ(quiet, 3) << "it does not come to rest";
    check_nodes();
    if (!testing::Test::HasFailure()) check_rest();
    resting_ = false;
    if (!fortune_.two) return;
    schedulers_.push_back(new_scheduler());
    tell_everything(*schedulers_.back());
}

void Town::check_rest() {
    bool waits_for_room = false;
    for (const auto& [name, pod] : pods_) {
        if (!pod.node.empty()) continue;
        waits_for_room = waits_for_room || !pod.nominated_node.empty();
        // Of two schedulers neither knows what the other promised.
        const bool promised = fortune_.calm && !fortune_.two && gone_for_.contains(pod.meta.uid);
        EXPECT_FALSE(promised) << "others went for " << name << " in vain";
    }
    if (waits_for_room) return;
    for (const auto& [name, pod] : pods_) {
        if (!pod.node.empty()) continue;
        const auto row = sched::decide_pod(pod, server_, sched::default_profile()).verdict.chosen;
        EXPECT_EQ(row, ledger::kNoRow) << name << " would fit and waits";
    }
    for (const auto& [name, object] : reservations_) {
        EXPECT_FALSE(model::is_claimed(*object)) << name << " is claimed for a pod that is not bound";
        if (has_ended(*object)) continue;
        const bool ready = object->phase == model::ReservationPhase::Waiting && !fortune_.cores && !fortune_.gpus &&
                           server_.has_its_room(server_.find_reservation(object->meta.uid));
        EXPECT_FALSE(ready) << name << " has its room and waits";
        if (object->phase != model::ReservationPhase::Pending) continue;
        const auto row = sched::decide_reservation(*object, server_, sched::default_profile()).verdict.chosen;
        EXPECT_EQ(row, ledger::kNoRow) << name << " would fit and waits";
    }
}

}  // namespace berth::reservations
