// What befalls the nodes of a town, and pods that run there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ledger/intake.h"
#include "model/reservation.h"
#include "town.h"

namespace berth::reservations {

// Without a guard nothing may be under way that takes room: no server could refuse it. What waits to be sent is looked
// at once more.
std::string Town::shift() {
    const auto takes_room = [](const Sent& sent) {
        const auto* write = std::get_if<sched::WriteReservation>(&sent.plan);
        return (write && write->placed) || std::holds_alternative<sched::BindPod>(sent.plan) ||
               std::holds_alternative<sched::OpenReservation>(sent.plan);
    };
    if (!fortune_.guard && std::any_of(outbox_.begin(), outbox_.end(), takes_room)) return "nothing";
    const std::string what = random_.chance(1, 2) ? shift_pod() : (random_.chance(1, 4) ? lose_node() : shift_node());
    note_use();
    return what;
}

std::string Town::shift_node() {
    if (nodes_.size() < 3 || nodes_.empty()) {
        std::set<std::string> known;
        for (const auto& node : nodes_) known.insert(node->meta.name);
        for (const char* name : {"n0", "n1", "n2"}) {
            if (known.contains(name)) continue;
            add_node(name);
            return fmt::format("{} comes", name);
        }
    }
    auto next = std::make_shared<model::Node>(*nodes_[random_.below(nodes_.size())]);
    switch (random_.below(5)) {
        case 0:
            next->allocatable.set(model::kCpu, 1000 * random_.between(4, 10));
            break;
        case 1:
            next->allocatable.set(model::kMemory, random_.between(2, 10) << 30);
            break;
        case 2:
            next->allocatable.set(model::kPods, random_.between(1, 8));
            break;
        case 3:
            next->unschedulable = !next->unschedulable;
            break;
        default:
            if (next->meta.annotations.has(model::kNodeReservation)) {
                next->meta.annotations = {};
            } else {
                next->meta.annotations.set(std::string(model::kNodeReservation), R"({"resources":{"cpu":"2"}})");
            }
    }
    const std::string what = next->meta.name + " changes";
    put_node(std::move(next));
    return what;
}

// With its pods.
std::string Town::lose_node() {
    if (nodes_.size() < 2) return "nothing";
    const auto gone = nodes_[random_.below(nodes_.size())];
    std::erase(nodes_, gone);
    server_.remove_node(gone->meta.name);
    for (auto& scheduler : schedulers_) scheduler->remove(*ledger::kind_named("Node"), gone->meta, clock_.now());
    if (!fortune_.guard) reconcile();
    for (const auto& [name, pod] : std::map(pods_)) {
        if (pod.node == gone->meta.name) erase_pod(name);
    }
    return gone->meta.name + " goes";
}

// Somebody puts a new one there himself, as the guard lets him.
std::string Town::put_by_hand() {
    if (nodes_.empty()) return "nothing";
    const std::string made = make_pod(random_.chance(1, 2) ? 1 : 100);
    model::Pod next = pods_.at(fmt::format("p{}", names_));
    next.node = nodes_[random_.below(nodes_.size())]->meta.name;
    const bool parts = next.spec->cores.own_cores || next.spec->devices.asks();
    if (parts || (fortune_.guard && !rules_.judge_created(next, server_).ok())) return made;
    store(next);
    return made + " by hand";
}

// It completes, or asks for another amount.
std::string Town::shift_pod() {
    if (random_.chance(1, 4)) return put_by_hand();
    std::vector<std::string> bound;
    for (const auto& [name, pod] : pods_) {
        if (!pod.node.empty() && !pod.terminal() && !pod.meta.deleted) bound.push_back(name);
    }
    if (bound.empty()) return "nothing";
    model::Pod next = pods_.at(bound[random_.below(bound.size())]);
    if (random_.chance(1, 2)) {
        if (!fortune_.guard) reconcile();
        next.phase = model::PodPhase::Succeeded;
        store(next);
        return next.meta.name + " completes";
    }
    auto spec = std::make_shared<model::PodSpec>(*next.spec);
    spec->requests.set(model::kCpu, 1000 * random_.between(1, 6));
    next.spec = std::move(spec);
    const model::Pod was = pods_.at(next.meta.name);
    const auto allowed =
        rules_.judge_change(next, server_.find_pod(was.meta.uid), server_, [&] { return Result<model::Pod>(was); });
    if (fortune_.guard && !allowed.ok()) return next.meta.name + " may not grow";
    note_use();
    const std::string what = fmt::format("{} asks for {}m", next.meta.name, next.spec->requests.get(model::kCpu));
    store(std::move(next));
    if (fortune_.guard) check_nodes();
    return what;
}

}  // namespace berth::reservations
