#include "ledger/ledger.h"

#include <algorithm>

#include "base/check.h"
#include "model/node_reservation.h"

namespace berth::ledger {
namespace {

template <class T>
void erase_value(std::vector<T>& values, const T& value) {
    const auto found = std::find(values.begin(), values.end(), value);
    CHECK(found != values.end());
    *found = values.back();
    values.pop_back();
}

int64_t saturating_add(int64_t a, int64_t b) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

// What of the pod's request no live reservation pays for.
Resources uncharged(const PodEntry& pod, const std::vector<ReservationEntry>& reservations) {
    Resources rest = pod.spec->requests;
    for (const auto& charge : pod.charges) {
        if (reservations[charge.reservation].live) rest.subtract(charge.amount);
    }
    return rest;
}

}  // namespace

// ---- nodes

Row Ledger::new_row() {
    if (!free_rows_.empty()) {
        const Row row = free_rows_.back();
        free_rows_.pop_back();
        return row;
    }
    nodes_.emplace_back();
    for (auto& column : columns_) {
        if (!column) continue;
        column->allocatable.push_back(0);
        column->used.push_back(0);
    }
    scoring_cpu_.push_back(0);
    scoring_memory_.push_back(0);
    return static_cast<Row>(nodes_.size() - 1);
}

Column& Ledger::column_for(ResourceId id) {
    if (columns_.size() <= id.index) columns_.resize(id.index + 1u);
    auto& column = columns_[id.index];
    if (!column) {
        column = std::make_unique<Column>();
        column->allocatable.resize(nodes_.size());
        column->used.resize(nodes_.size());
        for (Row row = 0; row < nodes_.size(); ++row) {
            if (alive(row)) column->used[row] = recomputed_use(row).get(id);
        }
    }
    return *column;
}

const Column* Ledger::column(ResourceId id) const {
    return id.index < columns_.size() ? columns_[id.index].get() : nullptr;
}

int64_t Ledger::free(Row row, ResourceId id) const {
    const Column* found = column(id);
    return found ? found->allocatable[row] - found->used[row] : 0;
}

Row Ledger::row_of(std::string_view node_name) const {
    const auto found = by_name_.find(node_name);
    return found == by_name_.end() ? kNoRow : found->second;
}

void Ledger::set_allocatable(Row row, const Resources& amounts) {
    amounts.for_each([&](ResourceId id, int64_t) { column_for(id); });
    for (size_t i = 0; i < columns_.size(); ++i) {
        if (columns_[i]) columns_[i]->allocatable[row] = amounts.get({static_cast<uint16_t>(i)});
    }
}

void Ledger::put(std::shared_ptr<const model::Node> node) {
    const std::string& name = node->meta.name;
    Row row = row_of(name);
    const bool fresh = row == kNoRow;
    if (fresh) {
        row = new_row();
        by_name_.emplace(name, row);
    } else {
        images_.remove(*nodes_[row].node);
    }
    images_.add(*node);
    nodes_[row].node = std::move(node);
    set_allocatable(row, model::view_of(*nodes_[row].node).allocatable);
    if (fresh) attach_orphans(nodes_[row].node->meta.name, row);
}

void Ledger::remove_node(std::string_view name) {
    const Row row = row_of(name);
    if (row == kNoRow) return;
    while (!nodes_[row].reservations.empty()) finish(nodes_[row].reservations.back());
    const std::vector<PodIndex> pods = nodes_[row].pods;
    for (const PodIndex index : pods) {
        unplace(index);
        orphans_[std::string(name)].push_back(index);
    }
    images_.remove(*nodes_[row].node);
    set_allocatable(row, {});
    nodes_[row] = NodeEntry();
    by_name_.erase(name);
    free_rows_.push_back(row);
}

void Ledger::attach_orphans(std::string_view node_name, Row row) {
    const auto found = orphans_.find(node_name);
    if (found != orphans_.end()) {
        const std::vector<PodIndex> waiting = std::move(found->second);
        orphans_.erase(found);
        for (const PodIndex index : waiting) {
            pods_[index].row = row;
            place(index);
        }
    }
    for (ReservationIndex i = 0; i < reservations_.size(); ++i) {
        auto& entry = reservations_[i];
        if (entry.object && entry.live && entry.row == kNoRow && entry.object->node == node_name) {
            entry.row = row;
            hold(i);
        }
    }
}

// ---- sums

void Ledger::add_used(Row row, const Resources& amounts) {
    amounts.for_each([&](ResourceId id, int64_t amount) {
        if (id.index >= columns_.size() || !columns_[id.index]) return;
        int64_t& used = columns_[id.index]->used[row];
        used = saturating_add(used, amount);
    });
}

Resources Ledger::recomputed_use(Row row) const {
    Resources use;
    for (const PodIndex index : nodes_[row].pods) use.add(uncharged(pods_[index], reservations_));
    for (const ReservationIndex index : nodes_[row].reservations) {
        Resources held = reservations_[index].allocatable;
        held.max(reservations_[index].charged);
        use.add(held);
    }
    return use;
}

void Ledger::recompute_row(Row row) {
    const Resources use = recomputed_use(row);
    for (size_t i = 0; i < columns_.size(); ++i) {
        if (columns_[i]) columns_[i]->used[row] = use.get({static_cast<uint16_t>(i)});
    }
}

// ---- pods

PodIndex Ledger::find_pod(std::string_view uid) const {
    const auto found = pod_by_uid_.find(uid);
    return found == pod_by_uid_.end() ? kNone : found->second;
}

void Ledger::place(PodIndex index) {
    PodEntry& pod = pods_[index];
    NodeEntry& entry = nodes_[pod.row];
    entry.pods.push_back(index);
    entry.ports.add(pod.spec->ports);
    volumes_.enter({false, index}, pod.row, pod.spec);
    scoring_cpu_[pod.row] = saturating_add(scoring_cpu_[pod.row], pod.spec->scoring_cpu_milli);
    scoring_memory_[pod.row] = saturating_add(scoring_memory_[pod.row], pod.spec->scoring_memory);
    if (pod.charges.empty()) return add_used(pod.row, pod.spec->requests);
    for (const auto& charge : pod.charges) {
        auto& reservation = reservations_[charge.reservation];
        reservation.owners.push_back(index);
        recompute_charged(reservation);
    }
    recompute_row(pod.row);
}

void Ledger::unplace(PodIndex index) {
    PodEntry& pod = pods_[index];
    if (pod.row == kNoRow) return;
    const Row row = pod.row;
    NodeEntry& entry = nodes_[row];
    erase_value(entry.pods, index);
    entry.ports.remove(pod.spec->ports);
    volumes_.leave({false, index}, row);
    scoring_cpu_[row] = 0;
    scoring_memory_[row] = 0;
    for (const PodIndex other : entry.pods) {
        scoring_cpu_[row] = saturating_add(scoring_cpu_[row], pods_[other].spec->scoring_cpu_milli);
        scoring_memory_[row] = saturating_add(scoring_memory_[row], pods_[other].spec->scoring_memory);
    }
    for (const auto& charge : pod.charges) {
        auto& reservation = reservations_[charge.reservation];
        erase_value(reservation.owners, index);
        recompute_charged(reservation);
    }
    pod.row = kNoRow;
    recompute_row(row);
}

PodIndex Ledger::assume(const model::Pod& pod, Row row, std::vector<Charge> charges) {
    CHECK(find_pod(pod.meta.uid) == kNone);
    PodIndex index = 0;
    if (free_pods_.empty()) {
        index = static_cast<PodIndex>(pods_.size());
        pods_.emplace_back();
    } else {
        index = free_pods_.back();
        free_pods_.pop_back();
    }
    PodEntry& entry = pods_[index];
    entry.uid = pod.meta.uid;
    entry.ns = pod.meta.ns;
    entry.name = pod.meta.name;
    entry.spec = pod.spec;
    entry.charges = std::move(charges);
    entry.row = row;
    entry.node = row == kNoRow ? pod.node : std::string(name(row));
    entry.priority = pod.spec->priority;
    entry.assumed = true;
    entry.terminating = pod.meta.deleted.has_value();
    entry.created = pod.meta.created;
    entry.started = pod.started.value_or(pod.meta.created);
    pod_by_uid_.emplace(entry.uid, index);
    if (row == kNoRow) {
        orphans_[entry.node].push_back(index);
    } else {
        place(index);
    }
    return index;
}

void Ledger::put(const model::Pod& pod) {
    const PodIndex known = find_pod(pod.meta.uid);
    if (pod.terminal() || pod.node.empty()) {
        if (pod.terminal() && known != kNone) free_pod(known);
        return;
    }
    if (known != kNone) {
        PodEntry& entry = pods_[known];
        if (entry.node == pod.node && *entry.spec == *pod.spec) {
            entry.assumed = false;
            entry.terminating = pod.meta.deleted.has_value();
            entry.started = pod.started.value_or(pod.meta.created);
            return;
        }
        free_pod(known);
    }
    pods_[assume(pod, row_of(pod.node), charges_of(pod))].assumed = false;
}

void Ledger::free_pod(PodIndex index) {
    PodEntry& pod = pods_[index];
    if (pod.row == kNoRow) {
        const auto found = orphans_.find(pod.node);
        if (found != orphans_.end()) {
            std::erase(found->second, index);
            if (found->second.empty()) orphans_.erase(found);
        }
    }
    unplace(index);
    pod_by_uid_.erase(pod.uid);
    pod = PodEntry();
    free_pods_.push_back(index);
}

void Ledger::remove_pod(std::string_view uid) {
    const PodIndex index = find_pod(uid);
    if (index != kNone) free_pod(index);
}

void Ledger::lift(PodIndex index) {
    const Row row = pods_[index].row;
    unplace(index);
    pods_[index].node = std::string(name(row));
}

void Ledger::settle(PodIndex index) {
    pods_[index].row = row_of(pods_[index].node);
    CHECK(pods_[index].row != kNoRow);
    place(index);
}

}  // namespace berth::ledger
