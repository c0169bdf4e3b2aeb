// The half of the cluster in memory that does what the scheduler plans, as a server with its preconditions would, and
// those who act on what it stores: the kubelet of a victim, whoever binds and makes volumes.
#include "model/allocated.h"
#include "model/preemption_hold.h"
#include "model/reservation_status.h"
#include "run/cluster.h"
#include "run/requests.h"

namespace berth::run {
namespace {

using sched::Outcome;

// Where a class allows its volumes; absent: everywhere.
std::optional<model::NodeSelector> reach_of(const model::StorageClass& made_by) {
    if (!made_by.topologies) return std::nullopt;
    std::vector<model::NodeSelectorTerm> terms;
    for (const auto& topology : *made_by.topologies) {
        model::NodeSelectorTerm& term = terms.emplace_back();
        for (const auto& wanted : topology.requirements()) {
            term.match_expressions.push_back({wanted.key, "In", wanted.values});
        }
    }
    return model::NodeSelector(terms);
}

}  // namespace

std::vector<sched::Plan> Cluster::carry_out(const sched::Plan& plan) {
    const Outcome outcome = std::visit([&](const auto& step) { return write(step); }, plan);
    return answer(plan, outcome);
}

// nullptr: it is gone, or another one of that name.
Cluster::StoredPod* Cluster::stored(const std::string& ns, const std::string& name, const std::string& uid) {
    const auto found = pods_.find(ns + "/" + name);
    return found == pods_.end() || found->second.pod.meta.uid != uid ? nullptr : &found->second;
}

// ---- pods

Outcome Cluster::write(const sched::BindPod& bind) {
    StoredPod* found = stored(bind.ns, bind.name, bind.uid);
    if (found == nullptr || !found->pod.node.empty() || found->pod.meta.deleted) return Outcome::Refused;
    if (Said* told = said(bind.uid)) {
        told->answer.node = bind.node;
        told->answer.message.clear();
        tell_draws(found->pod, told->answer);
    }
    found->pod.node = bind.node;
    found->pod.nominated_node.clear();
    for (const auto& [key, value] : bind.annotations) found->pod.meta.annotations.set(key, value);
    refusals_.erase(bind.uid);
    progress_ = true;
    feed(found->pod);
    if (options_.ends_with_bind) end_used(found->pod);
    return Outcome::Done;
}

// Of the pod as the scheduler holds it: what it uses up is gone when it is bound.
void Cluster::tell_draws(const model::Pod& pod, Placement& answer) const {
    const auto index = ledger().find_pod(pod.meta.uid);
    if (index == ledger::kNone) return;
    if (const auto& which = ledger().pod(index).which) answer.which = *which;
    for (const auto& charge : ledger().pod(index).charges()) {
        const model::Meta& from = ledger().reservation(charge.reservation).object->meta;
        if (answer.reservation.empty()) answer.reservation = from.name;
        auto& amounts = answer.charges[from.name];
        charge.amount.for_each([&](model::ResourceId id, int64_t amount) {
            if (id != model::kPods && amount > 0) amounts.set(id, amount);
        });
    }
}

// An allocateOnce reservation ends in the transaction that binds its owner.
void Cluster::end_used(const model::Pod& pod) {
    const auto links = model::read_links(pod.meta.annotations);
    if (!links) return;
    for (const auto& link : links->named()) {
        const auto held = reservation(link.name);
        if (!held || held->meta.uid != link.uid || !held->allocate_once || !model::holds_room(*held)) continue;
        model::Reservation next = *held;
        static_cast<model::ReservationStatus&>(next) = model::ended_by_bind(next, wall_);
        next.current_owners = {{pod.meta.ns, pod.meta.name, pod.meta.uid}};
        store(std::move(next));
    }
}

Outcome Cluster::write(const sched::RefusePod& refuse) {
    StoredPod* found = stored(refuse.ns, refuse.name, refuse.uid);
    if (found == nullptr) return Outcome::Refused;
    refusals_[refuse.uid] = refuse.message;
    if (Said* told = said(refuse.uid); told && told->answer.message.empty() && told->answer.error.empty()) {
        (refuse.reason == "SchedulerError" ? told->answer.error : told->answer.message) = refuse.message;
    }
    if (refuse.nominated) found->pod.nominated_node = *refuse.nominated;
    feed(found->pod);
    return Outcome::Done;
}

Outcome Cluster::write(const sched::ClearNomination& clear) {
    StoredPod* found = stored(clear.ns, clear.name, clear.uid);
    if (found == nullptr) return Outcome::Refused;
    found->pod.nominated_node.clear();
    feed(found->pod);
    return Outcome::Done;
}

// The victim is gone as soon as it is told to go.
Outcome Cluster::write(const sched::EvictPod& plan) {
    if (stored(plan.ns, plan.name, plan.uid) == nullptr) return Outcome::Refused;
    if (plan.step == sched::EvictPod::Step::Delete) evict(plan);
    return Outcome::Done;
}

void Cluster::evict(const sched::EvictPod& plan) {
    const std::string key = plan.ns + "/" + plan.name;
    if (Said* told = said(plan.by)) told->answer.victims.push_back(key);
    progress_ = true;
    erase_pod(key);
}

// ---- reservations

Outcome Cluster::write(const sched::HoldRoom& hold) {
    auto room = model::stored_preemption_hold(*hold.pod, hold.node, "hold-" + hold.uid, wall_);
    const auto [found, fresh] = reservations_.try_emplace(room.meta.name);
    if (!fresh) return Outcome::Done;
    found->second.arrival = arrivals_++;
    store(std::move(room));
    return Outcome::Done;
}

Outcome Cluster::write(const sched::DropRoom& drop) {
    const auto held = reservation(drop.name);
    if (!held || held->meta.uid != drop.uid) return Outcome::Refused;
    erase_reservation(drop.name);
    return Outcome::Done;
}

Outcome Cluster::write_status(const std::string& name, const std::string& uid, uint64_t revision,
                              const model::ReservationStatus& status) {
    const auto held = reservation(name);
    if (!held || held->meta.uid != uid || held->meta.revision != revision) return Outcome::Refused;
    model::Reservation next = *held;
    static_cast<model::ReservationStatus&>(next) = status;
    store(std::move(next));
    return Outcome::Done;
}

Outcome Cluster::write(const sched::WriteReservation& write) {
    const Outcome outcome = write_status(write.name, write.uid, write.revision, write.status);
    if (outcome != Outcome::Done) return outcome;
    progress_ = progress_ || write.placed;
    Said* told = said(write.uid);
    if (told == nullptr) return outcome;
    told->answer.message = write.message;
    if (write.placed) {
        const auto* ready = model::find_condition(write.status, "Ready");
        const bool waits = write.status.phase == model::ReservationPhase::Waiting;
        told->answer.node = write.status.node;
        told->answer.which = write.status.which;
        told->answer.message = waits && ready ? ready->message : "";
    }
    return outcome;
}

Outcome Cluster::write(const sched::ClaimReservation& claim) {
    progress_ = true;
    return write_status(claim.name, claim.uid, claim.revision, claim.status);
}

Outcome Cluster::write(const sched::OpenReservation& open) {
    progress_ = true;
    return write_status(open.name, open.uid, open.revision, open.status);
}

// ---- volumes

void Cluster::bind_claim(const model::ClaimRef& ref, const std::string& volume) {
    const auto& volumes = ledger().volumes();
    auto claim = std::make_shared<model::PersistentVolumeClaim>(*volumes.claims().seen(ref.ns + "/" + ref.name));
    claim->meta.revision = ++revision_;
    claim->volume = volume;
    claim->phase = model::ClaimPhase::Bound;
    claim->bind_completed = true;
    progress_ = true;
    scheduler_.put(std::move(claim), now_);
}

Outcome Cluster::write(const sched::KeepVolume& keep) {
    const auto& volumes = ledger().volumes();
    const auto held = volumes.volumes().seen(keep.volume);
    if (!held || !volumes.claims().seen(keep.claim.ns + "/" + keep.claim.name)) return Outcome::Refused;
    auto volume = std::make_shared<model::PersistentVolume>(*held);
    volume->meta.revision = ++revision_;
    volume->claim = keep.claim;
    volume->phase = model::VolumePhase::Bound;
    scheduler_.put(std::move(volume), now_);
    bind_claim(keep.claim, keep.volume);
    return Outcome::Done;
}

// Whoever makes volumes of the class makes one.
Outcome Cluster::write(const sched::SelectNode& select) {
    const auto& volumes = ledger().volumes();
    const auto claim = volumes.claims().seen(select.claim.ns + "/" + select.claim.name);
    const auto made_by = claim ? volumes.classes().find(claim->class_name()) : nullptr;
    if (!made_by) return Outcome::Refused;
    auto volume = std::make_shared<model::PersistentVolume>();
    volume->meta.name = "pvc-" + (claim->meta.uid.empty() ? claim->meta.full_name() : claim->meta.uid);
    volume->meta.revision = ++revision_;
    volume->capacity = claim->request.value_or(model::Quantity());
    volume->storage_class = claim->class_name();
    volume->modes = claim->modes;
    volume->block = claim->block;
    volume->reclaim = made_by->reclaim;
    volume->affinity = reach_of(*made_by);
    volume->claim = select.claim;
    volume->source =
        model::VolumeSource{std::string(model::driver_of_provisioner(made_by->provisioner)), volume->meta.name, true};
    volume->phase = model::VolumePhase::Bound;
    const std::string name = volume->meta.name;
    scheduler_.put(std::move(volume), now_);
    bind_claim(select.claim, name);
    return Outcome::Done;
}

// ---- and the rest

Outcome Cluster::write(const sched::AskExtender&) {
    return Outcome::Refused;  // there are none
}

Outcome Cluster::write(const sched::ReadBack& read) {
    if (read.what == sched::ReadBack::What::Pod) {
        if (StoredPod* found = stored(read.ns, read.name, read.uid)) {
            feed(found->pod);
            return Outcome::Done;
        }
    } else if (const auto held = reservation(read.name); held && held->meta.uid == read.uid) {
        scheduler_.put(held, now_);
        return Outcome::Done;
    }
    scheduler_.remove(kind_of(read), ledger::uid_alone(read.uid), now_);
    return Outcome::Done;
}

}  // namespace berth::run
