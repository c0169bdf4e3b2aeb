// What users do in a town.
#include "town.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/device_wish.h"
#include "model/preemption_hold.h"
#include "model/reservation_rules.h"

namespace berth::reservations {
namespace {

using std::chrono::seconds;

constexpr const char* kApps[] = {"a", "b", "low"};

}  // namespace

Town::Town(uint64_t seed, Fortune fortune) : random_(seed), fortune_(fortune) {
    for (size_t i = 0; i < (fortune.two ? 2 : 1); ++i) schedulers_.push_back(new_scheduler());
    clock_.advance(std::chrono::hours(1));
    for (int i = 0; i < 3; ++i) add_node(fmt::format("n{}", i));
}

Town::~Town() = default;

void Town::run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
        const bool mortal = fortune_.deaths != Fortune::Deaths::None;
        if (mortal && random_.chance(somebody_is_nominated() ? 4 : 1, 8)) die();
        if (fortune_.shifts && random_.chance(1, 6)) {
            SCOPED_TRACE(fmt::format("step {}: {}", i, shift()));
            check_nodes();
        }
        SCOPED_TRACE(fmt::format("step {}: {}", i, step()));
        check_nodes();
        if (i % 20 == 19) settle();
    }
}

std::string Town::step() {
    const uint64_t which = random_.below(16);
    if (which < 3) return make_pod(1);
    if (which < 5) return make_pod(random_.chance(1, 3) ? 1000 : 100);
    if (which < 7) return make_reservation();
    if (which < 8) return edit();
    if (which < 9) return delete_something();
    if (which < 10) return end_pods();
    if (which < 11) return reconcile();
    if (which < 12) {
        clock_.advance(fortune_.calm ? seconds(random_.below(20)) : seconds(random_.below(120)));
        return "time";
    }
    decide(fortune_.two ? random_.below(2) : 0, 4);
    send(random_.below(6));
    return "schedule";
}

// As many cores as it asks for cpu; some want no other on theirs.
void Town::wish_for_cores(model::Meta& meta, model::PodSpec& spec) {
    if (!fortune_.cores || random_.chance(1, 2)) return;
    meta.labels.set("koordinator.sh/qosClass", "LSR");
    if (random_.chance(1, 2)) meta.annotations.set(model::kResourceSpec, R"({"requiredCPUBindPolicy":"FullPCPUs"})");
    spec.labels = meta.labels;
    spec.cores = model::read_core_wish(meta.labels, meta.annotations);
}

// A part of one, or one or two whole ones.
void Town::wish_for_gpus(const model::Meta& meta, model::PodSpec& spec) {
    if (!fortune_.gpus || random_.chance(1, 3)) return;
    constexpr int64_t kPercents[] = {30, 50, 100, 100, 200};
    spec.requests.set(model::device_resources().gpu, kPercents[random_.below(std::size(kPercents))]);
    spec.devices = model::read_device_wish(spec.requests, meta.annotations);
}

std::string Town::make_pod(int32_t priority) {
    model::Pod pod;
    pod.meta.ns = "default";
    pod.meta.name = fmt::format("p{}", ++names_);
    pod.meta.uid = new_uid();
    pod.meta.created = clock_.wall();
    const std::string app = kApps[random_.below(3)];
    pod.meta.labels.set("app", app);
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "default";
    spec->labels = pod.meta.labels;
    spec->scheduler_name = "berth";
    spec->priority = priority;
    spec->requests =
        model::Resources{{model::kCpu, 1000 * random_.between(1, priority > 1 ? 6 : 3)}, {model::kPods, 1}};
    spec->scoring_cpu_milli = spec->requests.get(model::kCpu);
    if (fortune_.shifts) spec->requests.set(model::kMemory, random_.between(0, 3) << 30);
    if (random_.chance(1, 3)) spec->ports.push_back({8080, model::Protocol::TCP, "0.0.0.0"});
    if (priority > 1 && random_.chance(1, 3)) {
        spec->anti_affinity.push_back(
            {Selector::parse("app=low").value(), {"default"}, std::nullopt, "kubernetes.io/hostname"});
    }
    if (random_.chance(1, 6)) pod.meta.annotations.set(model::kReservationAffinity, "{}");
    wish_for_cores(pod.meta, *spec);
    wish_for_gpus(pod.meta, *spec);
    pod.spec = std::move(spec);
    const std::string what = fmt::format("{} of {} ({}m)", pod.meta.name, app, pod.spec->requests.get(model::kCpu));
    store(std::move(pod));
    return what;
}

std::string Town::make_reservation() {
    model::Reservation made;
    made.meta.name = fmt::format("r{}", ++names_);
    made.meta.uid = new_uid();
    made.meta.created = clock_.wall();
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "default";
    spec->priority = INT32_MAX;
    spec->never_preempts = true;
    spec->requests = model::Resources{{model::kCpu, 1000 * random_.between(1, 5)}, {model::kPods, 1}};
    if (fortune_.shifts) spec->requests.set(model::kMemory, random_.between(0, 3) << 30);
    if (random_.chance(1, 4)) spec->ports.push_back({8080, model::Protocol::TCP, "0.0.0.0"});
    made.owners.emplace_back().labels = Selector::parse(fmt::format("app={}", kApps[random_.below(3)])).value();
    made.allocate_once = random_.chance(1, 2);
    made.pre_allocation = random_.chance(1, 4);
    made.policy = static_cast<model::AllocatePolicy>(random_.below(3));
    made.ttl = fortune_.calm ? std::chrono::hours(900) : std::chrono::hours(1);
    if (!fortune_.calm && random_.chance(1, 2)) made.ttl = seconds(random_.between(1, 300));
    if (!fortune_.calm && random_.chance(1, 6)) made.expires = clock_.wall() + seconds(random_.between(-60, 200));
    wish_for_cores(made.meta, *spec);
    wish_for_gpus(made.meta, *spec);
    made.spec = std::move(spec);
    const std::string name = made.meta.name;
    store(std::move(made));
    return name;
}

// One that is placed keeps its owners and its policy, as a server that judges would have it.
std::string Town::edit() {
    const std::string name = any(reservations_, [](const auto& entry) {
        return !model::is_final(entry.second->phase) && model::preemption_hold_owner(*entry.second).empty();
    });
    if (fortune_.calm || name.empty()) return "nothing";
    model::Reservation next = *reservations_.at(name);
    const bool waits = next.phase == model::ReservationPhase::Pending;
    switch (random_.below(waits ? 8 : 4)) {
        case 0:
            next.unschedulable = !next.unschedulable;
            break;
        case 1:
            next.expires = std::nullopt;
            next.ttl = seconds(random_.between(1, 2000));
            break;
        case 2:
            next.expires = clock_.wall() + seconds(random_.between(-10, 200));
            break;
        case 3:
            next.taints.empty() ? next.taints.push_back({"k", "", "NoSchedule"}) : next.taints.clear();
            break;
        case 4:
            next.pre_allocation = !next.pre_allocation;
            break;
        case 5:
            next.policy = static_cast<model::AllocatePolicy>(random_.below(3));
            break;
        case 6:
            next.allocate_once = !next.allocate_once;
            break;
        default:
            next.owners.front().labels = Selector::parse(fmt::format("app={}", kApps[random_.below(3)])).value();
    }
    store(std::move(next));
    return "edit " + name;
}

template <class Map, class Good>
std::string Town::any(const Map& objects, Good good) {
    std::vector<std::string> names;
    for (const auto& entry : objects) {
        if (good(entry)) names.push_back(entry.first);
    }
    return names.empty() ? "" : names[random_.below(names.size())];
}

std::string Town::delete_something() {
    if (!fortune_.calm && random_.chance(1, 3)) {
        const std::string name = any(reservations_, [](const auto&) { return true; });
        if (!name.empty()) erase_reservation(name);
        return "delete " + name;
    }
    const std::string name = any(pods_, [](const auto& entry) { return !entry.second.meta.deleted; });
    if (name.empty()) return "nothing";
    evict(name, false);
    return "delete " + name;
}

void Town::evict(const std::string& name, bool preempted) {
    if (pods_.at(name).node.empty()) return erase_pod(name);
    model::Pod next = pods_.at(name);
    next.meta.deleted = clock_.wall();
    next.preempted = preempted;
    store(std::move(next));
}

// Without a guard a kubelet takes its time: by then the controllers have seen what was bound.
std::string Town::end_pods() {
    if (!fortune_.guard) reconcile();
    for (const auto& [name, pod] : std::map(pods_)) {
        if (pod.meta.deleted) erase_pod(name);
    }
    return "pods end";
}

std::string Town::reconcile() {
    server_.pass_time(clock_.wall(), clock_.now());
    const auto changes =
        control::reconcile_reservations({.opens = false}, server_, final_ones_, clock_.wall(), clock_.now());
    for (const auto& change : changes) {
        if (change.over) {
            erase_reservation(change.name);
            continue;
        }
        model::Reservation next = *reservations_.at(change.name);
        static_cast<model::ReservationStatus&>(next) = *change.status;
        store(std::move(next));
    }
    return "reconcile";
}

}  // namespace berth::reservations
