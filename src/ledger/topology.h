#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "ledger/ids.h"
#include "model/node.h"
#include "model/node_selector.h"

namespace berth::ledger {

// Nodes with the same value of a label key are one domain. An id is stable while a node is in it.
using Domain = uint32_t;
inline constexpr Domain kNoDomain = UINT32_MAX;

// Not a label key: each node is a domain of its own.
inline constexpr std::string_view kEachNode = "(each node)";

// One label key as a column over all rows.
class TopologyKey {
public:
    // `nobody`: beside the table's rows, kNoDomain for each; stands for the column while no node has the key.
    TopologyKey(std::string_view key, const std::vector<Domain>& nobody) : key_(key), nobody_(nobody) {}

    const std::string& key() const { return key_; }
    // Beside the table's rows; kNoDomain where the node lacks the key or the row is empty.
    std::span<const Domain> rows() const { return rows_.empty() ? nobody_ : rows_; }
    Domain at(Row row) const { return row < rows_.size() ? rows_[row] : kNoDomain; }
    // Every id lies below it.
    size_t domains() const { return key_ == kEachNode ? rows_.size() : nodes_.size(); }
    Domain find(std::string_view value) const;

    void enter(Row row, const Labels& labels);
    void leave(Row row, const Labels& labels);

private:
    std::string key_;
    const std::vector<Domain>& nobody_;
    std::vector<Domain> rows_;  // empty: no node ever had the key
    base::StringMap<Domain> by_value_;
    std::vector<uint32_t> nodes_;  // in each domain
    std::vector<Domain> free_;
};

// Which nodes take part in a count. The default takes all of them.
struct NodeFilter {
    std::vector<std::string> keys;  // labels that a node must carry
    Labels node_selector;
    std::optional<std::vector<model::NodeSelectorTerm>> required_nodes;
    // Set: NoSchedule and NoExecute taints must be tolerated by one of these.
    std::optional<std::vector<model::Toleration>> tolerations;
    bool operator==(const NodeFilter&) const = default;
};

class NodeSet {
public:
    explicit NodeSet(NodeFilter filter);

    const NodeFilter& filter() const { return filter_; }
    bool has(Row row) const { return row < members_.size() && members_[row] != 0; }
    void enter(Row row, const model::Node& node);
    void leave(Row row) { members_[row] = 0; }

private:
    bool takes(const model::Node& node) const;

    NodeFilter filter_;
    model::NodeSelector required_;
    std::vector<uint8_t> members_;
};

// The domains of one key among the nodes of one set.
class Scope {
public:
    Scope(TopologyKey& key, NodeSet& nodes) : key_(&key), nodes_(&nodes) {}

    const TopologyKey& key() const { return *key_; }
    const NodeSet& nodes() const { return *nodes_; }
    // How many domains have at least one node.
    size_t present() const { return present_; }
    void enter(Row row);
    void leave(Row row);

private:
    TopologyKey* key_;
    NodeSet* nodes_;
    std::vector<uint32_t> per_domain_;
    size_t present_ = 0;
};

// Keys, node sets and scopes that counters use, each once. Pointers stay good until collect().
class Topology {
public:
    // The row must have nobody counted on it.
    void enter(Row row, std::shared_ptr<const model::Node> node);
    void leave(Row row);
    // The same node again. False: its labels or taints changed, so it has to leave and enter.
    bool refresh(Row row, const std::shared_ptr<const model::Node>& node);

    // Whether any node has this label.
    bool anywhere(std::string_view key) const { return key == kEachNode || carriers_.contains(key); }
    // A column of rows that all lack a key.
    std::span<const Domain> nobody() const { return nobody_; }
    const TopologyKey& key(std::string_view name);
    const Scope& scope(std::string_view key, const NodeFilter& filter);
    size_t rows() const { return nodes_.size(); }
    size_t size() const { return keys_.size() + sets_.size() + scopes_.size(); }

    // Frees what nobody uses; used(scope) and used(key) say who does.
    template <class UsesScope, class UsesKey>
    void collect(UsesScope uses_scope, UsesKey uses_key) {
        absl::flat_hash_set<const void*> used;
        absl::erase_if(scopes_, [&](const auto& entry) {
            if (!uses_scope(entry.second.get())) return true;
            used.insert(&entry.second->key());
            used.insert(&entry.second->nodes());
            return false;
        });
        std::erase_if(sets_, [&](const auto& set) { return !used.contains(set.get()); });
        absl::erase_if(keys_, [&](const auto& entry) {
            return !uses_key(entry.second.get()) && !used.contains(entry.second.get());
        });
    }

private:
    TopologyKey& find_key(std::string_view name);
    NodeSet& find_set(const NodeFilter& filter);

    std::vector<std::shared_ptr<const model::Node>> nodes_;  // by row
    std::vector<Domain> nobody_;                             // by row
    base::StringMap<size_t> carriers_;                       // nodes, by label key
    base::StringMap<std::unique_ptr<TopologyKey>> keys_;
    std::vector<std::unique_ptr<NodeSet>> sets_;
    absl::flat_hash_map<std::pair<const TopologyKey*, const NodeSet*>, std::unique_ptr<Scope>> scopes_;
};

}  // namespace berth::ledger
