#include "ledger/ledger.h"

#include <algorithm>

#include "base/check.h"
#include "base/saturating.h"
#include "ledger/spaces.h"
#include "ledger/which.h"
#include "model/node_reservation.h"

namespace berth::ledger {
namespace {

template <class Values, class T>
void erase_value(Values& values, const T& value) {
    const auto found = std::find(values.begin(), values.end(), value);
    CHECK(found != values.end());
    *found = values.back();
    values.pop_back();
}

// Whether two states of a node look the same to every filter and scorer that reads the node itself.
bool same_for_placement(const model::Node& a, const model::Node& b) {
    return a.unschedulable == b.unschedulable && a.meta.labels == b.meta.labels && a.taints == b.taints &&
           a.images == b.images;
}

// Whether two states of a node are the same to whoever adds up what the cluster has.
bool same_capacity(const model::Node& a, const model::Node& b) {
    return a.allocatable == b.allocatable && a.unschedulable == b.unschedulable && a.not_ready == b.not_ready &&
           a.meta.annotations == b.meta.annotations;
}

// A reservation counts in the scores like a pod, less what its owners already count: cpu and memory.
std::pair<int64_t, int64_t> scoring_of(const ReservationEntry& reservation, const Slab<PodEntry>& pods) {
    int64_t cpu = reservation.scoring_cpu;
    int64_t memory = reservation.scoring_memory;
    for (const PodIndex owner : reservation.owners) {
        cpu = base::saturating_subtract(cpu, pods[owner].spec->scoring_cpu_milli);
        memory = base::saturating_subtract(memory, pods[owner].spec->scoring_memory);
    }
    return {std::max<int64_t>(0, cpu), std::max<int64_t>(0, memory)};
}

}  // namespace

Charges PodEntry::charges() const {
    Charges all;
    each_charge([&](ReservationIndex reservation, const Resources& amount) { all.push_back({reservation, amount}); });
    return all;
}

void PodEntry::set_charges(const Charges& charges) {
    if (charges.empty() && !charged()) return;
    const bool whole = charges.size() == 1 && charges.front().amount == spec->requests;
    payer = whole ? charges.front().reservation : kNone;
    parts.clear();
    if (!whole) parts.assign(charges.begin(), charges.end());
}

Ledger::Ledger() = default;

Ledger::~Ledger() = default;

Ledger::Ledger(Ledger&&) noexcept = default;

Ledger& Ledger::operator=(Ledger&&) noexcept = default;

void Ledger::put(model::Namespace space) {
    terms_->put(std::move(space));
}

void Ledger::remove_namespace(std::string_view name) {
    terms_->remove_namespace(name);
}

void Ledger::put(model::Workload workload) {
    workloads_.put(std::move(workload));
}

void Ledger::remove_workload(model::WorkloadKind kind, std::string_view ns, std::string_view name) {
    workloads_.remove(kind, ns, name);
}

void Ledger::count_spaces() {
    CHECK(nodes_.size() == 0 && pod_by_uid_.empty() && reservation_by_uid_.empty());
    spaces_ = std::make_unique<Spaces>();
}

std::shared_ptr<const model::PodSpec> Ledger::intern(const std::shared_ptr<const model::PodSpec>& spec) {
    return specs_.intern(spec);
}

// ---- nodes

Row Ledger::new_row() {
    if (!free_rows_.empty()) {
        const Row row = free_rows_.back();
        free_rows_.pop_back();
        return row;
    }
    const Row row = nodes_.add();
    for (auto& column : columns_) {
        if (!column) continue;
        column->allocatable.push_back(0);
        column->used.push_back(0);
    }
    scoring_cpu_.push_back(0);
    scoring_memory_.push_back(0);
    return row;
}

Column& Ledger::column_for(ResourceId id) {
    if (columns_.size() <= id.index) columns_.resize(id.index + 1u);
    auto& column = columns_[id.index];
    if (!column) {
        column = std::make_unique<Column>();
        column->allocatable.resize(nodes_.size());
        column->used.resize(nodes_.size());
        for (Row row = 0; uncounted_.contains(id.index) && row < nodes_.size(); ++row) {
            if (!alive(row)) continue;
            column->used[row] = recomputed_use(row).get(id);
            if (column->used[row] == INT64_MAX) nodes_[row].saturated = true;
        }
        uncounted_.erase(id.index);
    }
    return *column;
}

void Ledger::set_allocatable(Row row, const Resources& amounts) {
    amounts.for_each([&](ResourceId id, int64_t) { column_for(id); });
    for (size_t i = 0; i < columns_.size(); ++i) {
        if (!columns_[i]) continue;
        const ResourceId id{static_cast<uint16_t>(i)};
        Column& column = *columns_[i];
        int64_t& here = column.allocatable[row];
        column.having -= here != 0 ? 1 : 0;
        here = amounts.get(id);
        column.having += here != 0 ? 1 : 0;
        if (column.having == 0 && id > model::kPods) drop_column(id);
    }
}

// No node has it any more: what a node says only for a while takes no room for each of the others.
void Ledger::drop_column(ResourceId id) {
    const auto& used = columns_[id.index]->used;
    if (std::any_of(used.begin(), used.end(), [](int64_t amount) { return amount != 0; })) uncounted_.insert(id.index);
    columns_[id.index].reset();
}

void Ledger::put(std::shared_ptr<const model::Node> node) {
    Row row = row_of(node->meta.name);
    if (row == kNoRow) {
        row = new_row();
        images_.add(*node);
        nodes_[row].node = std::move(node);
        by_name_.insert(row);
        set_allocatable(row, allocatable_of(row));
        terms_->enter(row, nodes_[row].node);
        cores_.see(row, *nodes_[row].node);
        see_devices(row);
        changes_.touch_member(row);
        if (spaces_) spaces_->touch_nodes();
        return attach_orphans(nodes_[row].node->meta.name, row);
    }
    const bool same = same_for_placement(*nodes_[row].node, *node);
    if (spaces_ && !same_capacity(*nodes_[row].node, *node)) spaces_->touch_nodes();
    if (!same) {
        images_.remove(*nodes_[row].node);
        images_.add(*node);
        changes_.touch_static(row);
    }
    nodes_[row].node = std::move(node);
    set_allocatable(row, allocatable_of(row));
    set_near(row);
    cores_.see(row, *nodes_[row].node);
    see_devices(row);
    changes_.touch(row);
}

void Ledger::remove_node(std::string_view name) {
    const Row row = row_of(name);
    if (row == kNoRow) return;
    if (spaces_) spaces_->touch_nodes();
    by_name_.erase(row);
    const std::vector<ReservationIndex> reservations = nodes_[row].reservations;
    for (const ReservationIndex index : reservations) refresh(index);
    const std::vector<PodIndex> pods = nodes_[row].pods;
    for (const PodIndex index : pods) {
        unplace(index);
        orphan(index, name);
    }
    images_.remove(*nodes_[row].node);
    terms_->leave(row);
    cores_.forget(row);
    devices_.forget(row);
    set_allocatable(row, {});
    nodes_[row] = NodeEntry();
    free_rows_.push_back(row);
    changes_.touch_member(row);
}

// It stays without a row until its node is known.
void Ledger::orphan(PodIndex index, std::string_view node_name) {
    orphans_[std::string(node_name)].push_back(index);
    orphan_node_[index] = node_name;
    volumes_.enter({false, index}, kNoRow, pods_[index].spec);
}

void Ledger::attach_orphans(std::string_view node_name, Row row) {
    const auto found = orphans_.find(node_name);
    if (found != orphans_.end()) {
        const std::vector<PodIndex> waiting = std::move(found->second);
        orphans_.erase(found);
        for (const PodIndex index : waiting) {
            pods_[index].row = row;
            orphan_node_.erase(index);
            volumes_.leave({false, index}, kNoRow);
            place(index);
        }
    }
    if (const auto stranded = stranded_.find(node_name); stranded != stranded_.end()) {
        const std::vector<ReservationIndex> found_node = stranded->second;
        for (const ReservationIndex index : found_node) refresh(index);
    }
}

// ---- sums

// A row whose sum would wrap is recomputed from then on.
void Ledger::change_sum(Row row, ResourceId id, int64_t by) {
    if (id.index >= columns_.size() || !columns_[id.index]) {
        uncounted_.insert(id.index);
        return;
    }
    int64_t& sum = columns_[id.index]->used[row];
    if (__builtin_add_overflow(sum, by, &sum)) nodes_[row].saturated = true;
}

void Ledger::change_scoring(Row row, int64_t cpu, int64_t memory) {
    const bool wraps = __builtin_add_overflow(scoring_cpu_[row], cpu, &scoring_cpu_[row]);
    if (__builtin_add_overflow(scoring_memory_[row], memory, &scoring_memory_[row]) || wraps) {
        nodes_[row].saturated = true;
    }
}

void Ledger::change_sums(const PodEntry& pod, int sign) {
    if (pod.payer == kNone) {
        pod.spec->requests.for_each([&](ResourceId id, int64_t amount) {
            for (const auto& part : pod.parts) amount = base::saturating_subtract(amount, part.amount.get(id));
            if (amount != 0) change_sum(pod.row, id, sign * amount);
        });
    }
    change_scoring(pod.row, sign * pod.spec->scoring_cpu_milli, sign * pod.spec->scoring_memory);
}

void Ledger::score(ReservationEntry& reservation, int64_t cpu, int64_t memory) {
    change_scoring(reservation.row, cpu - reservation.scored_cpu, memory - reservation.scored_memory);
    reservation.scored_cpu = cpu;
    reservation.scored_memory = memory;
}

void Ledger::change_sums(ReservationEntry& reservation, int sign) {
    const Resources& allocatable = reservation.allocatable;
    const Resources& charged = reservation.charged;
    allocatable.for_each([&](ResourceId id, int64_t amount) {
        change_sum(reservation.row, id, sign * std::max(amount, charged.get(id)));
    });
    charged.for_each([&](ResourceId id, int64_t amount) {
        if (!allocatable.has(id)) change_sum(reservation.row, id, sign * amount);
    });
    const auto [cpu, memory] = sign > 0 ? scoring_of(reservation, pods_) : std::pair<int64_t, int64_t>();
    score(reservation, cpu, memory);
    if (spaces_ && sign > 0) count_held(static_cast<ReservationIndex>(&reservation - reservations_.data()));
    if (spaces_ && sign < 0) spaces_->release(static_cast<ReservationIndex>(&reservation - reservations_.data()));
}

void Ledger::count_held(ReservationIndex index) {
    spaces_->hold(index, *reservations_[index].object, undrawn(reservations_[index]));
}

// Changes the reservation's owners by a pod. All that can change in the sums is what that pod requests.
template <class F>
void Ledger::recount(ReservationEntry& reservation, const PodEntry& pod, F change) {
    const auto held = [&](ResourceId id) {
        return std::max(reservation.allocatable.get(id, INT64_MIN), reservation.charged.get(id));
    };
    absl::InlinedVector<int64_t, 4> before;
    pod.spec->requests.for_each([&](ResourceId id, int64_t) { before.push_back(held(id)); });
    change();
    size_t at = 0;
    pod.spec->requests.for_each([&](ResourceId id, int64_t) {
        const int64_t was = before[at++];
        const int64_t is = held(id);
        if (is == was) return;
        change_sum(reservation.row, id, -was);
        change_sum(reservation.row, id, is);
    });
    rescore(reservation);
    if (spaces_) count_held(static_cast<ReservationIndex>(&reservation - reservations_.data()));
}

void Ledger::rescore(ReservationEntry& reservation) {
    const auto [cpu, memory] = scoring_of(reservation, pods_);
    score(reservation, cpu, memory);
}

void Ledger::join(PodIndex index, ReservationIndex to, const Resources& amount) {
    ReservationEntry& reservation = reservations_[to];
    recount(reservation, pods_[index], [&] {
        reservation.owners.push_back(index);
        reservation.charged.add(amount);
    });
    index_owners(to);
    show_near(to);
}

void Ledger::part(PodIndex index, ReservationIndex from) {
    ReservationEntry& reservation = reservations_[from];
    recount(reservation, pods_[index], [&] {
        erase_value(reservation.owners, index);
        recompute_charged(from);
    });
    show_near(from);
}

void Ledger::mend_sums(Row row) {
    if (nodes_[row].saturated) recompute_row(row);
}

void Ledger::recompute_row(Row row) {
    const Resources use = recomputed_use(row);
    for (size_t i = 0; i < columns_.size(); ++i) {
        if (columns_[i]) columns_[i]->used[row] = use.get({static_cast<uint16_t>(i)});
    }
    int64_t cpu = 0;
    int64_t memory = 0;
    const auto count = [&](int64_t more_cpu, int64_t more_memory) {
        cpu = base::saturating_add(cpu, more_cpu);
        memory = base::saturating_add(memory, more_memory);
    };
    for (const PodIndex index : nodes_[row].pods) {
        count(pods_[index].spec->scoring_cpu_milli, pods_[index].spec->scoring_memory);
    }
    for (const ReservationIndex index : nodes_[row].reservations) {
        const auto [more_cpu, more_memory] = scoring_of(reservations_[index], pods_);
        count(more_cpu, more_memory);
    }
    scoring_cpu_[row] = cpu;
    scoring_memory_[row] = memory;
}

// ---- pods

void Ledger::place(PodIndex index) {
    PodEntry& pod = pods_[index];
    NodeEntry& entry = nodes_[pod.row];
    pod.place = static_cast<uint32_t>(entry.pods.size());
    entry.pods.push_back(index);
    if (!pod.spec->ports.empty()) {
        entry.ports.add(pod.spec->ports);
        if (reserves_ports(pod.row)) recompute_ports(pod.row);
    }
    if (pod.linked && !pod.linked->fault.empty()) ++entry.unreadable;
    if (!pod.spec->volumes.empty()) volumes_.enter({false, index}, pod.row, pod.spec);
    priorities_.add(pod.priority);
    changes_.touch(pod.row);
    count_near(index);
    pod.each_charge([&](ReservationIndex to, const Resources& amount) { join(index, to, amount); });
    change_sums(pod, 1);
    mend_sums(pod.row);
    if (pod.which || pod.spec->devices.demand) enter_parts(index);
}

// The pod's row forgets it; the pod still knows its row.
void Ledger::leave_row(PodIndex index) {
    PodEntry& pod = pods_[index];
    NodeEntry& entry = nodes_[pod.row];
    const PodIndex last = entry.pods.back();
    entry.pods[pod.place] = last;
    pods_[last].place = pod.place;
    entry.pods.pop_back();
    if (!pod.spec->ports.empty()) {
        entry.ports.remove(pod.spec->ports);
        if (reserves_ports(pod.row)) recompute_ports(pod.row);
    }
    if (pod.linked && !pod.linked->fault.empty()) --entry.unreadable;
    if (pod.which || pod.spec->devices.demand) leave_parts(index);
    if (!pod.spec->volumes.empty()) volumes_.leave({false, index}, pod.row);
    priorities_.remove(pod.priority);
    changes_.touch(pod.row);
    uncount_near(index);
    change_sums(pod, -1);
    pod.each_charge([&](ReservationIndex from, const Resources&) { part(index, from); });
    mend_sums(pod.row);
}

void Ledger::unplace(PodIndex index) {
    if (pods_[index].row == kNoRow) return;
    leave_row(index);
    pods_[index].row = kNoRow;
}

PodIndex Ledger::new_pod() {
    if (free_pods_.empty()) return pods_.add();
    const PodIndex index = free_pods_.back();
    free_pods_.pop_back();
    return index;
}

PodIndex Ledger::assume(const model::Pod& pod, Row row, const Charges& charges, WhichPtr which) {
    CHECK(row != kNoRow);
    std::unique_ptr<Linked> linked;
    if (!charges.empty() && !pod.meta.owners.empty()) {
        linked = std::make_unique<Linked>();
        linked->owners = pod.meta.owners;
    }
    const PodIndex index = enter(pod, row, std::move(linked), true);
    pods_[index].which = std::move(which);
    pods_[index].implied = !charges.empty();
    pods_[index].set_charges(charges);
    place(index);
    return index;
}

PodIndex Ledger::enter(const model::Pod& pod, Row row, std::unique_ptr<Linked> linked, bool assumed) {
    const PodIndex index = new_pod();
    PodEntry& entry = pods_[index];
    entry.uid = Uid(pod.meta.uid);
    CHECK(pod_by_uid_.insert(index).second);
    entry.name = Text(pod.meta.name);
    entry.spec = specs_.intern(pod.spec);
    entry.row = row;
    entry.priority = pod.spec->priority;
    entry.assumed = assumed;
    entry.terminating = pod.meta.deleted.has_value();
    entry.preempted = pod.preempted;
    entry.created = pod.meta.created;
    entry.started = pod.started.value_or(kNotStarted);
    if (spaces_) {
        const Waits waited = spaces_->place(entry.uid, *entry.spec, entry.terminating, assumed);
        entry.waits = assumed ? waited : Waits::No;
    }
    if (linked) set_links(index, std::move(linked));
    return index;
}

void Ledger::see_bound(PodIndex index) {
    pods_[index].assumed = false;
    pods_[index].waits = Waits::No;
}

void Ledger::put(const model::Pod& pod) {
    const PodIndex known = find_pod(pod.meta.uid);
    if (pod.terminal()) {
        if (known != kNone) free_pod(known);
        return put_ended(pod);
    }
    if (pod.node.empty()) return;
    if (known != kNone) {
        PodEntry& entry = pods_[known];
        if (node_of(known) == pod.node && (entry.spec == pod.spec || *entry.spec == *pod.spec)) {
            see_bound(known);
            set_terminating(known, pod.meta.deleted.has_value());
            entry.preempted = pod.preempted;
            const base::Time started = pod.started.value_or(kNotStarted);
            if (entry.started != started && entry.row != kNoRow) changes_.touch(entry.row);
            entry.started = started;
            see_links(known, pod);
            return see_which(known, pod);
        }
        free_pod(known);
    }
    const PodIndex index = enter(pod, row_of(pod.node), read_linked(pod), false);
    pods_[index].which = which_of(pod);
    if (pods_[index].row == kNoRow) return orphan(index, pod.node);
    pods_[index].set_charges(resolve(index));
    place(index);
    spend(index);
}

void Ledger::free_pod(PodIndex index) {
    pod_by_uid_.erase(index);
    vacate(index);
}

// Of a pod that is not found by its uid any more.
void Ledger::vacate(PodIndex index) {
    CHECK(!pods_[index].lifted);
    if (pods_[index].row == kNoRow) {
        const auto waiting = orphans_.find(orphan_node_.at(index));
        std::erase(waiting->second, index);
        if (waiting->second.empty()) orphans_.erase(waiting);
        orphan_node_.erase(index);
        volumes_.leave({false, index}, kNoRow);
    }
    unplace(index);
    PodEntry& pod = pods_[index];
    if (pod.linked) set_links(index, nullptr);
    if (spaces_) spaces_->displace(std::move(pod.uid), pod.spec, pod.terminating, pod.waits);
    pod = PodEntry();
    free_pods_.push_back(index);
}

void Ledger::remove_pod(std::string_view uid) {
    ended_.remove(uid);
    const auto found = pod_by_uid_.find(Uid(uid));
    if (found == pod_by_uid_.end()) return;
    const PodIndex index = *found;
    pod_by_uid_.erase(found);
    vacate(index);
}

void Ledger::lift(PodIndex index) {
    CHECK(pods_[index].row != kNoRow && !pods_[index].lifted);
    leave_row(index);
    pods_[index].lifted = true;
}

void Ledger::put_back(PodIndex index) {
    CHECK(pods_[index].lifted);
    pods_[index].lifted = false;
    place(index);
}

}  // namespace berth::ledger
