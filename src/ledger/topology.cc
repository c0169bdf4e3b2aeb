#include "ledger/topology.h"

#include <algorithm>

#include "base/check.h"

namespace berth::ledger {

// ---- keys

Domain TopologyKey::find(std::string_view value) const {
    const auto found = by_value_.find(value);
    return found == by_value_.end() ? kNoDomain : found->second;
}

void TopologyKey::enter(Row row, const Labels& labels) {
    const std::string* value = labels.find(key_);
    if (!value && key_ != kEachNode && rows_.empty()) return;
    if (row >= rows_.size()) rows_.resize(nobody_.size(), kNoDomain);
    if (key_ == kEachNode) {
        rows_[row] = row;
        return;
    }
    if (!value) return;
    Domain domain = find(*value);
    if (domain == kNoDomain) {
        if (free_.empty()) {
            domain = static_cast<Domain>(nodes_.size());
            nodes_.push_back(0);
        } else {
            domain = free_.back();
            free_.pop_back();
        }
        by_value_.emplace(*value, domain);
    }
    ++nodes_[domain];
    rows_[row] = domain;
}

void TopologyKey::leave(Row row, const Labels& labels) {
    const Domain domain = at(row);
    if (domain == kNoDomain) return;
    rows_[row] = kNoDomain;
    if (key_ == kEachNode || --nodes_[domain] != 0) return;
    by_value_.erase(labels.get(key_));
    free_.push_back(domain);
}

// ---- node sets

NodeSet::NodeSet(NodeFilter filter) : filter_(std::move(filter)) {
    if (filter_.required_nodes) required_ = model::NodeSelector(*filter_.required_nodes);
}

bool NodeSet::takes(const model::Node& node) const {
    const Labels& labels = node.meta.labels;
    for (const auto& key : filter_.keys) {
        if (!labels.has(key)) return false;
    }
    for (const auto& [key, value] : filter_.node_selector) {
        const std::string* found = labels.find(key);
        if (!found || *found != value) return false;
    }
    if (filter_.required_nodes && !required_.matches(node.meta.name, labels)) return false;
    if (!filter_.tolerations) return true;
    return std::none_of(node.taints.begin(), node.taints.end(), [&](const auto& taint) {
        const bool hard = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
        return hard && !model::tolerates(*filter_.tolerations, taint);
    });
}

void NodeSet::enter(Row row, const model::Node& node) {
    if (row >= members_.size()) members_.resize(row + 1);
    members_[row] = takes(node);
}

// ---- scopes

void Scope::enter(Row row) {
    const Domain domain = key_->at(row);
    if (domain == kNoDomain || !nodes_->has(row)) return;
    if (domain >= per_domain_.size()) per_domain_.resize(key_->domains());
    if (per_domain_[domain]++ == 0) ++present_;
}

void Scope::leave(Row row) {
    const Domain domain = key_->at(row);
    if (domain == kNoDomain || !nodes_->has(row)) return;
    if (--per_domain_[domain] == 0) --present_;
}

// ---- all of them

void Topology::enter(Row row, std::shared_ptr<const model::Node> node) {
    if (row >= nodes_.size()) nodes_.resize(row + 1);
    if (row >= nobody_.size()) nobody_.resize(row + 1, kNoDomain);
    CHECK(!nodes_[row]);
    nodes_[row] = std::move(node);
    const Labels& labels = nodes_[row]->meta.labels;
    for (const auto& label : labels) ++carriers_[label.first];
    for (auto& [name, key] : keys_) key->enter(row, labels);
    for (auto& set : sets_) set->enter(row, *nodes_[row]);
    for (auto& [place, scope] : scopes_) scope->enter(row);
}

void Topology::leave(Row row) {
    for (auto& [place, scope] : scopes_) scope->leave(row);
    for (auto& set : sets_) set->leave(row);
    const Labels& labels = nodes_[row]->meta.labels;
    for (auto& [name, key] : keys_) key->leave(row, labels);
    for (const auto& label : labels) {
        const auto carried = carriers_.find(label.first);
        if (--carried->second == 0) carriers_.erase(carried);
    }
    nodes_[row] = nullptr;
}

bool Topology::refresh(Row row, const std::shared_ptr<const model::Node>& node) {
    if (nodes_[row]->meta.labels != node->meta.labels || nodes_[row]->taints != node->taints) return false;
    nodes_[row] = node;
    return true;
}

TopologyKey& Topology::find_key(std::string_view name) {
    if (const auto known = keys_.find(name); known != keys_.end()) return *known->second;
    TopologyKey& made = *keys_.emplace(name, std::make_unique<TopologyKey>(name, nobody_)).first->second;
    if (!anywhere(name)) return made;
    for (Row row = 0; row < nodes_.size(); ++row) {
        if (nodes_[row]) made.enter(row, nodes_[row]->meta.labels);
    }
    return made;
}

NodeSet& Topology::find_set(const NodeFilter& filter) {
    for (auto& set : sets_) {
        if (set->filter() == filter) return *set;
    }
    NodeSet& made = *sets_.emplace_back(std::make_unique<NodeSet>(filter));
    for (Row row = 0; row < nodes_.size(); ++row) {
        if (nodes_[row]) made.enter(row, *nodes_[row]);
    }
    return made;
}

const TopologyKey& Topology::key(std::string_view name) {
    return find_key(name);
}

const Scope& Topology::scope(std::string_view key_name, const NodeFilter& filter) {
    TopologyKey& key = find_key(key_name);
    NodeSet& set = find_set(filter);
    std::unique_ptr<Scope>& place = scopes_[{&key, &set}];
    if (place) return *place;
    place = std::make_unique<Scope>(key, set);
    Scope& made = *place;
    for (Row row = 0; row < nodes_.size(); ++row) {
        if (nodes_[row]) made.enter(row);
    }
    return made;
}

}  // namespace berth::ledger
