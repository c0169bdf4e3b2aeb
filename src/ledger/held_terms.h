#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <span>
#include <vector>

#include "ledger/counts.h"
#include "ledger/label_index.h"
#include "ledger/pod_terms.h"
#include "ledger/topology.h"

namespace berth::ledger {

enum class Hold : uint8_t { Affinity, AntiAffinity, PreferredAffinity, PreferredAntiAffinity };

// A term that placed pods carry, once however many carry it, and where they are.
struct HeldTerm {
    model::PodTerm term;
    Hold hold = Hold::Affinity;
    int32_t weight = 0;  // of a preferred one
    const TopologyKey* key = nullptr;
    Counts holders;     // by domain of key; those on nodes without it are left out, they never matter
    size_t groups = 0;  // that use it; 0: the entry is free
};

class HeldTerms {
public:
    // A group of pods with this spec begins: its terms, each as often as it says it.
    std::vector<uint32_t> hold(const model::PodSpec& spec, Topology& topology);
    void let_go(std::span<const uint32_t> ids);
    void count(std::span<const uint32_t> ids, Row row, int delta);

    // The terms that speak of a pod with this namespace and these labels, ascending.
    std::vector<uint32_t> about(std::string_view ns, const Labels& labels, const NamespaceLabels& namespaces) const;
    const HeldTerm& at(uint32_t id) const { return terms_[id]; }
    absl::flat_hash_set<const TopologyKey*> keys() const;
    size_t size() const { return terms_.size() - free_.size(); }

private:
    uint32_t intern(const model::PodTerm& term, Hold hold, int32_t weight, Topology& topology);
    static size_t hash_of(const model::PodTerm& term, Hold hold, int32_t weight);

    std::vector<HeldTerm> terms_;
    std::vector<uint32_t> free_;
    absl::flat_hash_map<size_t, std::vector<uint32_t>> by_hash_;
    LabelIndex index_;
};

}  // namespace berth::ledger
