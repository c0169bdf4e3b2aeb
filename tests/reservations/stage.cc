#include "stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "model/reservation_status.h"

namespace berth::reservations {
namespace {

constexpr const char* kDriver = "csi.example.com";

model::Resources amounts(int64_t cpu, int64_t memory) {
    model::Resources out;
    if (cpu > 0) out.set(model::kCpu, cpu * 1000);
    if (memory > 0) out.set(model::kMemory, memory * kGi);
    return out;
}

std::shared_ptr<model::PodSpec> spec_of(const std::string& app, int64_t cpu, int64_t memory,
                                        const std::vector<int32_t>& ports, const std::vector<std::string>& claims) {
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "default";
    if (!app.empty()) spec->labels.set("app", app);
    spec->requests = amounts(cpu, memory);
    spec->requests.set(model::kPods, 1);
    spec->scoring_cpu_milli = cpu * 1000;
    spec->scoring_memory = memory * kGi;
    for (const int32_t port : ports) spec->ports.push_back({port, model::Protocol::TCP, "0.0.0.0"});
    for (const auto& claim : claims) {
        spec->volumes.push_back({model::VolumeKind::Claim, claim, claim, "", {}, false});
    }
    return spec;
}

// Its volumes are made for the first pod that is bound with them.
std::shared_ptr<const model::StorageClass> storage_class() {
    auto made = std::make_shared<model::StorageClass>();
    made->meta.name = "csi";
    made->provisioner = kDriver;
    made->wait_for_consumer = true;
    return made;
}

template <class T>
void shuffle(std::vector<T>& values, base::Random& random) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

}  // namespace

std::string Stage::new_uid() {
    return fmt::format("{:08x}-0000-4000-8000-000000000000", ++uids_);
}

void Stage::add_node(const std::string& name, int64_t cpu, int64_t memory, int64_t pods_allowed) {
    auto node = std::make_shared<model::Node>();
    node->meta.name = name;
    node->meta.uid = new_uid();
    node->allocatable = amounts(cpu, memory);
    node->allocatable.set(model::kPods, pods_allowed);
    nodes[name] = node;
    ledger.put(node);
}

void Stage::delete_node(const std::string& name) {
    nodes.erase(name);
    ledger.remove_node(name);
}

void Stage::add_claim(const std::string& name, const ClaimWish& wish) {
    auto claim = std::make_shared<model::PersistentVolumeClaim>();
    claim->meta.ns = "default";
    claim->meta.name = name;
    claim->meta.uid = new_uid();
    claim->meta.revision = 1;
    claim->storage_class = "csi";
    claim->modes.bits = static_cast<uint8_t>(wish.mode);
    claims[name] = claim;
    ledger.volumes().put(claims[name]);
    ledger.volumes().put(storage_class());
    if (wish.bound) give_volume(name);
}

void Stage::give_volume(const std::string& name) {
    auto volume = std::make_shared<model::PersistentVolume>();
    volume->meta.name = "pv-" + name;
    volume->meta.uid = new_uid();
    volume->storage_class = "csi";
    volume->source = model::VolumeSource{kDriver, "handle-" + name, true};
    volume->phase = model::VolumePhase::Bound;
    volumes[volume->meta.name] = volume;
    ledger.volumes().put(volumes[volume->meta.name]);
    auto claim = std::make_shared<model::PersistentVolumeClaim>(*claims.at(name));
    ++claim->meta.revision;
    claim->volume = volume->meta.name;
    claim->phase = model::ClaimPhase::Bound;
    claim->bind_completed = true;
    claims[name] = claim;
    ledger.volumes().put(claims[name]);
}

void Stage::limit_volumes(const std::string& node, int64_t limit) {
    auto made = std::make_shared<model::CsiNode>();
    made->meta.name = node;
    made->meta.uid = new_uid();
    made->drivers.push_back({kDriver, limit});
    csi_nodes[node] = made;
    ledger.volumes().put(csi_nodes[node]);
}

std::string Stage::create(const std::string& name, const PodWish& wish) {
    model::Pod pod;
    pod.meta.ns = "default";
    pod.meta.name = name;
    pod.meta.uid = new_uid();
    pod.meta.created = clock.wall();
    pod.meta.labels.set("app", wish.app);
    if (wish.must_draw) pod.meta.annotations.set(model::kReservationAffinity, "{}");
    pod.spec = spec_of(wish.app, wish.cpu, wish.memory, wish.ports, wish.claims);
    pods.insert_or_assign(name, pod);
    return pod.meta.uid;
}

void Stage::create_bound(const std::string& name, const PodWish& wish, const std::string& node) {
    create(name, wish);
    pods.at(name).node = node;
    ledger.put(pods.at(name));
}

std::string Stage::create(const std::string& name, const ReservationWish& wish) {
    model::Reservation made;
    made.meta.name = name;
    made.meta.uid = new_uid();
    made.meta.created = clock.wall();
    auto spec = spec_of("", wish.cpu, wish.memory, wish.ports, wish.claims);
    spec->priority = INT32_MAX;
    spec->never_preempts = true;
    spec->node_name = wish.node;
    made.spec = spec;
    model::ReservationOwner owner;
    owner.labels = model::Selector::parse("app=" + wish.owner).value();
    made.owners.push_back(owner);
    made.allocate_once = wish.once;
    made.pre_allocation = wish.pre_allocation;
    made.policy = wish.policy;
    made.ttl = wish.ttl;
    const std::string uid = made.meta.uid;
    store(std::move(made));
    return uid;
}

void Stage::store(model::Reservation reservation) {
    reservation.meta.revision = ++revision_;
    auto object = std::make_shared<const model::Reservation>(std::move(reservation));
    reservations[object->meta.name] = object;
    ledger.put(object);
}

void Stage::write(const sched::ClaimReservation& claim) {
    model::Reservation next = *reservations.at(claim.name);
    CHECK(next.meta.uid == claim.uid && next.meta.revision == claim.revision);
    static_cast<model::ReservationStatus&>(next) = claim.status;
    store(std::move(next));
}

void Stage::delete_pod(const std::string& name) {
    ledger.remove_pod(pods.at(name).meta.uid);
    in_flight.erase(name);
    pods.erase(name);
}

void Stage::delete_reservation(const std::string& name) {
    ledger.remove_reservation(reservations.at(name)->meta.uid);
    reservations.erase(name);
}

bool Stage::assume(const std::string& name) {
    const model::Pod& pod = pods.at(name);
    ledger.pass_time(clock.wall(), clock.now());
    sched::Decision decision = sched::decide_pod(pod, ledger, sched::default_profile());
    if (decision.verdict.chosen == ledger::kNoRow) return false;
    Flight flight{std::string(ledger.name(decision.verdict.chosen)), decision.annotations, {}};
    for (const auto& claim : sched::claims_for(pod, decision.charges, ledger)) {
        flight.spent.push_back(claim.name);
        write(claim);
    }
    model::Pod bound = pod;
    bound.node = flight.node;
    for (const auto& [key, value] : flight.annotations) bound.meta.annotations.set(key, value);
    on_bind(bound);
    ledger.assume(pod, decision.verdict.chosen, decision.charges);
    in_flight.insert_or_assign(name, std::move(flight));
    return true;
}

// The claims of a pod that still stand: the reservation may be gone, or be another one of that name.
std::vector<model::Reservation> Stage::claimed_by(const std::string& pod, const std::vector<std::string>& names) const {
    std::vector<model::Reservation> out;
    for (const auto& name : names) {
        const auto found = reservations.find(name);
        if (found == reservations.end() || model::is_final(found->second->phase)) continue;
        const auto& owners = found->second->current_owners;
        if (owners.size() == 1 && owners[0].uid == pods.at(pod).meta.uid) out.push_back(*found->second);
    }
    return out;
}

void Stage::bind(const std::string& name, bool in_one_transaction) {
    model::Pod& pod = pods.at(name);
    const Flight flight = std::move(in_flight.at(name));
    in_flight.erase(name);
    pod.node = flight.node;
    for (const auto& volume : pod.spec->volumes) {
        if (claims.at(volume.id)->volume.empty()) give_volume(volume.id);
    }
    for (const auto& [key, value] : flight.annotations) pod.meta.annotations.set(key, value);
    const auto links = model::read_links(pod.meta.annotations).value();
    if (links.allocated) ever_bound[links.allocated->uid].insert(pod.meta.uid);
    for (const auto& draw : links.draws) ever_bound[draw.uid].insert(pod.meta.uid);
    auto used_up = claimed_by(name, flight.spent);
    ledger.put(pod);
    if (!in_one_transaction) return;
    for (auto& reservation : used_up) {
        static_cast<model::ReservationStatus&>(reservation) = model::ended_by_bind(reservation, clock.wall());
        store(std::move(reservation));
    }
}

void Stage::give_back(const std::string& name) {
    const Flight flight = std::move(in_flight.at(name));
    in_flight.erase(name);
    ledger.remove_pod(pods.at(name).meta.uid);
    for (auto& released : claimed_by(name, flight.spent)) {
        released.current_owners.clear();
        store(std::move(released));
    }
}

bool Stage::place(const std::string& name) {
    model::Reservation next = *reservations.at(name);
    ledger.pass_time(clock.wall(), clock.now());
    if (ledger.reservation(ledger.find_reservation(next.meta.uid)).ended) return false;
    const auto decision = sched::decide_reservation(next, ledger, sched::default_profile());
    model::ReservationStatus& status = next;
    const auto row = decision.verdict.chosen;
    if (row == ledger::kNoRow) {
        status = model::unschedulable(status, sched::diagnosis(decision.verdict.strikes, ledger), clock.wall());
    } else {
        const auto node = ledger.name(row);
        status = decision.waiting
                     ? model::placed_waiting(status, node, next.spec->requests, decision.missing, clock.wall())
                     : model::placed(status, node, next.spec->requests, clock.wall());
        on_place(next);
        ledger.assume_reservation(ledger.find_reservation(next.meta.uid), row, decision.waiting);
    }
    store(std::move(next));
    return row != ledger::kNoRow;
}

std::vector<model::Event> Stage::reconcile() {
    std::vector<model::Event> events;
    ledger.pass_time(clock.wall(), clock.now());
    const auto changes = control::reconcile_reservations({}, ledger, final_ones, clock.wall(), clock.now());
    for (const auto& change : changes) {
        if (change.event) events.push_back(*change.event);
        if (!change.status) continue;
        model::Reservation next = *reservations.at(change.name);
        CHECK(next.meta.uid == change.uid && next.meta.revision == change.revision);
        static_cast<model::ReservationStatus&>(next) = *change.status;
        store(std::move(next));
    }
    for (const auto& change : changes) {
        if (change.over) delete_reservation(change.name);
    }
    for (const auto& [name, object] : std::map(reservations)) {
        const auto index = ledger.find_reservation(object->meta.uid);
        if (const auto release = sched::release_of(index, ledger, clock.wall())) write(*release);
    }
    return events;
}

ledger::Ledger Stage::replay(base::Random& random) const {
    ledger::Ledger fresh;
    std::vector<std::pair<int, std::string>> order;
    for (const auto& [name, node] : nodes) order.emplace_back(0, name);
    for (const auto& [name, pod] : pods) order.emplace_back(1, name);
    for (const auto& [name, reservation] : reservations) order.emplace_back(2, name);
    for (const auto& [name, claim] : claims) order.emplace_back(3, name);
    for (const auto& [name, volume] : volumes) order.emplace_back(4, name);
    for (const auto& [name, node] : csi_nodes) order.emplace_back(5, name);
    order.emplace_back(6, "");
    shuffle(order, random);
    for (const auto& [kind, name] : order) {
        if (kind == 0) fresh.put(nodes.at(name));
        if (kind == 1) fresh.put(pods.at(name));
        if (kind == 2) fresh.put(reservations.at(name));
        if (kind == 3) fresh.volumes().put(claims.at(name));
        if (kind == 4) fresh.volumes().put(volumes.at(name));
        if (kind == 5) fresh.volumes().put(csi_nodes.at(name));
        if (kind == 6) fresh.volumes().put(storage_class());
    }
    return fresh;
}

void Stage::restart(base::Random& random) {
    ledger = replay(random);
    final_ones = control::Ages();
    in_flight.clear();
}

std::string Stage::diagnosis(const std::string& name) const {
    const auto decision = sched::decide_pod(pods.at(name), ledger, sched::default_profile());
    return sched::diagnosis(decision.verdict.strikes, ledger);
}

std::string Stage::node_of(const std::string& name) const {
    return pods.at(name).node;
}

std::string Stage::reservation_of(const std::string& name) const {
    const auto links = model::read_links(pods.at(name).meta.annotations);
    return links && links->allocated ? links->allocated->name : "";
}

int64_t Stage::used(const std::string& node, model::ResourceId id) const {
    const auto row = ledger.row_of(node);
    CHECK(row != ledger::kNoRow);
    return ledger.column(id)->used[row];
}

}  // namespace berth::reservations
