// The schedulers of a town and their server: what is stored, who is told of it, and what comes of plans.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ledger/intake.h"
#include "model/allocated.h"
#include "model/preemption_hold.h"
#include "model/reservation_status.h"
#include "town.h"

namespace berth::reservations {
namespace {

constexpr int64_t kNodeCpu = 8;

// Four cores of two threads; two NUMA nodes.
std::shared_ptr<const model::NodeTopology> machine(const std::string& node) {
    auto out = std::make_shared<model::NodeTopology>();
    out->meta.name = node;
    for (int id = 0; id < kNodeCpu; ++id) out->cpus.push_back({id, id % 4, id % 4 / 2, 0});
    return out;
}

std::shared_ptr<const model::Device> gpus_of(const std::string& node) {
    auto out = std::make_shared<model::Device>();
    out->meta.name = node;
    for (int32_t minor = 0; minor < 3; ++minor) {
        model::DeviceUnit unit;
        unit.minor = minor;
        unit.healthy = true;
        unit.total = {model::kWholeDevice, model::kWholeDevice, 1000};
        out->units.push_back(unit);
    }
    return out;
}

}  // namespace

std::unique_ptr<sched::Scheduler> Town::new_scheduler() const {
    return std::make_unique<sched::Scheduler>(sched::Scheduler::Profiles{{"berth", sched::default_profile()}},
                                              sched::SchedulerOptions{.claims_first = !fortune_.guard});
}

bool Town::somebody_is_nominated() const {
    return std::any_of(pods_.begin(), pods_.end(), [](const auto& entry) {
        return entry.second.node.empty() && !entry.second.nominated_node.empty();
    });
}

// Another goes on, which knows what is stored and nothing else. What was under way is carried out, or never is.
void Town::die() {
    const size_t which = fortune_.two ? random_.below(2) : 0;
    if (fortune_.deaths == Fortune::Deaths::AtRest) send(1000);
    std::vector<Sent> lost;
    std::erase_if(outbox_, [&](Sent& sent) {
        if (sent.by != which) return false;
        lost.push_back(std::move(sent));
        return true;
    });
    for (const auto& sent : lost) {
        if (random_.chance(1, 2)) deliver(sent.plan);
    }
    schedulers_[which] = new_scheduler();
    tell_everything(*schedulers_[which]);
}

void Town::tell_everything(sched::Scheduler& scheduler) {
    for (const auto& node : nodes_) scheduler.put(node, clock_.now());
    for (const auto& machine : machines_) scheduler.put(machine, clock_.now());
    for (const auto& device : devices_) scheduler.put(device, clock_.now());
    for (const auto& [name, object] : reservations_) scheduler.put(object, clock_.now());
    for (const auto& [name, pod] : pods_) scheduler.put(std::make_shared<const model::Pod>(pod), clock_.now());
}

void Town::add_node(const std::string& name) {
    auto node = std::make_shared<model::Node>();
    node->meta.name = name;
    node->meta.labels.set("kubernetes.io/hostname", name);
    node->allocatable = model::Resources{{model::kCpu, kNodeCpu * 1000}, {model::kPods, 20}};
    if (fortune_.shifts) {
        node->allocatable.set(model::kMemory, int64_t{8} << 30);
        node->allocatable.set(model::kPods, random_.between(3, 8));
    }
    put_node(node);
    if (fortune_.cores) add_part(machines_, machine(name));
    if (fortune_.gpus) add_part(devices_, gpus_of(name));
}

template <class Part>
void Town::add_part(std::vector<std::shared_ptr<const Part>>& all, std::shared_ptr<const Part> part) {
    std::erase_if(all, [&](const auto& known) { return known->meta.name == part->meta.name; });
    all.push_back(part);
    server_.put(part);
    for (auto& scheduler : schedulers_) scheduler->put(part, clock_.now());
}

void Town::put_node(std::shared_ptr<const model::Node> node) {
    std::erase_if(nodes_, [&](const auto& known) { return known->meta.name == node->meta.name; });
    nodes_.push_back(node);
    server_.put(node);
    for (auto& scheduler : schedulers_) scheduler->put(node, clock_.now());
}

void Town::store(model::Pod pod) {
    pod.meta.revision = ++revision_;
    if (!pod.node.empty()) server_.put(pod);
    for (auto& scheduler : schedulers_) scheduler->put(std::make_shared<const model::Pod>(pod), clock_.now());
    pods_.insert_or_assign(pod.meta.name, std::move(pod));
}

void Town::store(model::Reservation object) {
    object.meta.revision = ++revision_;
    auto shared = std::make_shared<const model::Reservation>(std::move(object));
    reservations_[shared->meta.name] = shared;
    server_.put(shared);
    for (auto& scheduler : schedulers_) scheduler->put(shared, clock_.now());
}

void Town::erase_pod(const std::string& name) {
    const model::Meta gone = pods_.at(name).meta;
    pods_.erase(name);
    server_.remove_pod(gone.uid);
    for (auto& scheduler : schedulers_) scheduler->remove(*ledger::kind_named("Pod"), gone, clock_.now());
}

void Town::erase_reservation(const std::string& name) {
    const auto gone = reservations_.at(name);
    reservations_.erase(name);
    server_.remove_reservation(gone->meta.uid);
    for (auto& scheduler : schedulers_) {
        scheduler->remove(*ledger::kind_named("Reservation"), gone->meta, clock_.now());
    }
}

std::string Town::new_uid() {
    return fmt::format("{:08x}-0000-4000-8000-000000000000", ++uids_);
}

bool Town::has_ended(const model::Reservation& object) const {
    return model::end_of(object) && *model::end_of(object) <= clock_.wall();
}

// ---- plans

void Town::decide(size_t scheduler, size_t most) {
    for (auto& plan : schedulers_[scheduler]->step(clock_.now(), clock_.wall(), most)) {
        outbox_.push_back({scheduler, std::move(plan)});
    }
}

// Those that are under way together are carried out in any order.
void Town::send(uint64_t most) {
    for (uint64_t i = 0; i < most && !outbox_.empty(); ++i) {
        if (unkind()) std::swap(outbox_.front(), outbox_[random_.below(outbox_.size())]);
        const Sent sent = std::move(outbox_.front());
        outbox_.pop_front();
        const bool lost = !fortune_.guard && !resting_ && random_.chance(1, 25);
        auto outcome = lost ? sched::Outcome::Unknown : deliver(sent.plan);
        if (unkind() && !resting_ && random_.chance(1, 20)) outcome = sched::Outcome::Unknown;
        for (auto& next : schedulers_[sent.by]->outcome(sent.plan, outcome, clock_.now())) {
            outbox_.push_back({sent.by, std::move(next)});
        }
    }
}

sched::Outcome Town::deliver(const sched::Plan& plan) {
    server_.pass_time(clock_.wall(), clock_.now());
    const bool done = std::visit([this](const auto& p) { return carry_out(p); }, plan);
    return done ? sched::Outcome::Done : sched::Outcome::Refused;
}

bool Town::carry_out(const sched::BindPod& bind) {
    const auto found = pods_.find(bind.name);
    if (found == pods_.end() || found->second.meta.uid != bind.uid || !found->second.node.empty()) return false;
    model::Pod next = found->second;
    next.node = bind.node;
    for (const auto& [key, value] : bind.annotations) next.meta.annotations.set(key, value);
    if (fortune_.guard ? !rules_.judge_bind(next, server_).ok() : next.meta.deleted.has_value()) return false;
    const auto links = model::read_links(next.meta.annotations).value();
    store(std::move(next));
    for (const auto& [name, uid] : links.named()) {
        const auto drawn = reservations_.find(name);
        if (!fortune_.guard && (drawn == reservations_.end() || drawn->second->meta.uid != uid)) continue;
        model::Reservation object = *drawn->second;
        // Without a guard an end may overtake a bind.
        EXPECT_FALSE(fortune_.guard && has_ended(object)) << bind.name << " was bound to " << name << " after its end";
        if (!object.allocate_once) continue;
        EXPECT_TRUE(drawn_by_.emplace(uid, bind.name).second)
            << name << " was drawn from by " << drawn_by_[uid] << " and by " << bind.name;
        if (!fortune_.guard) continue;
        static_cast<model::ReservationStatus&>(object) = model::ended_by_bind(object, clock_.wall());
        store(std::move(object));
    }
    return true;
}

bool Town::carry_out(const sched::RefusePod& refuse) {
    const auto found = pods_.find(refuse.name);
    if (found == pods_.end()) return false;
    if (!refuse.nominated) return true;
    model::Pod next = found->second;
    next.nominated_node = *refuse.nominated;
    store(std::move(next));
    return true;
}

bool Town::carry_out(const sched::ClearNomination& clear) {
    return carry_out(sched::RefusePod{clear.uid, clear.ns, clear.name, "", "", ""});
}

bool Town::carry_out(const sched::EvictPod& evicted) {
    const auto found = pods_.find(evicted.name);
    if (found == pods_.end() || evicted.step == sched::EvictPod::Step::Mark) return true;
    evict(evicted.name, true);
    gone_for_.insert(evicted.by);
    return true;
}

bool Town::carry_out(const sched::HoldRoom& hold) {
    if (reservations_.contains(model::preemption_hold_name(hold.uid))) return true;
    store(model::stored_preemption_hold(*hold.pod, hold.node, new_uid(), clock_.wall()));
    return true;
}

bool Town::carry_out(const sched::DropRoom& drop) {
    const auto found = reservations_.find(drop.name);
    if (found == reservations_.end() || found->second->meta.uid != drop.uid) return false;
    erase_reservation(drop.name);
    return true;
}

bool Town::write_status(const auto& plan, bool placed) {
    const auto found = reservations_.find(plan.name);
    if (found == reservations_.end() || found->second->meta.uid != plan.uid) return false;
    if (found->second->meta.revision != plan.revision) return false;
    model::Reservation next = *found->second;
    static_cast<model::ReservationStatus&>(next) = plan.status;
    if (placed && fortune_.guard && !rules_.judge_place(next, server_)) return false;
    EXPECT_FALSE(placed && fortune_.guard && has_ended(next)) << plan.name << " was placed after its end";
    store(std::move(next));
    return true;
}

bool Town::carry_out(const sched::WriteReservation& write) {
    return write_status(write, write.placed);
}
bool Town::carry_out(const sched::ClaimReservation& claim) {
    return write_status(claim, false);
}
bool Town::carry_out(const sched::OpenReservation& open) {
    const auto index = server_.find_reservation(open.uid);
    if (fortune_.guard && index != ledger::kNone) {
        const bool node = server_.reservation(index).row != ledger::kNoRow;
        if (!node || !server_.has_its_room(index)) return false;
    }
    return write_status(open, false);
}

}  // namespace berth::reservations
