#include "ledger/held_terms.h"

#include <absl/hash/hash.h>

#include <algorithm>

namespace berth::ledger {

size_t HeldTerms::hash_of(const model::PodTerm& term, Hold hold, int32_t weight) {
    return absl::HashOf(hash_of_pods(term), term.topology_key, static_cast<int>(hold), weight);
}

uint32_t HeldTerms::intern(const model::PodTerm& term, Hold hold, int32_t weight, Topology& topology) {
    auto& alike = by_hash_[hash_of(term, hold, weight)];
    for (const uint32_t id : alike) {
        HeldTerm& known = terms_[id];
        if (known.hold != hold || known.weight != weight || known.term != term) continue;
        ++known.groups;
        return id;
    }
    uint32_t id = 0;
    if (free_.empty()) {
        id = static_cast<uint32_t>(terms_.size());
        terms_.emplace_back();
    } else {
        id = free_.back();
        free_.pop_back();
    }
    terms_[id] = {term, hold, weight, &topology.key(term.topology_key), {}, 1};
    alike.push_back(id);
    if (term.selector) index_.add(*term.selector, id);
    return id;
}

std::vector<uint32_t> HeldTerms::hold(const model::PodSpec& spec, Topology& topology) {
    std::vector<uint32_t> ids;
    for (const auto& term : spec.affinity) ids.push_back(intern(term, Hold::Affinity, 0, topology));
    for (const auto& term : spec.anti_affinity) ids.push_back(intern(term, Hold::AntiAffinity, 0, topology));
    for (const auto& [weight, term] : spec.preferred_affinity) {
        ids.push_back(intern(term, Hold::PreferredAffinity, weight, topology));
    }
    for (const auto& [weight, term] : spec.preferred_anti_affinity) {
        ids.push_back(intern(term, Hold::PreferredAntiAffinity, weight, topology));
    }
    return ids;
}

void HeldTerms::let_go(std::span<const uint32_t> ids) {
    for (const uint32_t id : ids) {
        HeldTerm& held = terms_[id];
        if (--held.groups != 0) continue;
        const auto alike = by_hash_.find(hash_of(held.term, held.hold, held.weight));
        std::erase(alike->second, id);
        if (alike->second.empty()) by_hash_.erase(alike);
        if (held.term.selector) index_.remove(*held.term.selector, id);
        held = HeldTerm();
        free_.push_back(id);
    }
}

void HeldTerms::count(std::span<const uint32_t> ids, Row row, int delta) {
    for (const uint32_t id : ids) {
        HeldTerm& held = terms_[id];
        const Domain domain = held.key->at(row);
        if (domain != kNoDomain) held.holders.add(domain, delta, held.key->domains());
    }
}

std::vector<uint32_t> HeldTerms::about(std::string_view ns, const Labels& labels,
                                       const NamespaceLabels& namespaces) const {
    std::vector<uint32_t> ids;
    if (index_.empty()) return ids;
    index_.candidates(labels, [&](uint32_t id) {
        if (held_term_matches(terms_[id].term, namespaces, ns, labels)) ids.push_back(id);
    });
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
}

absl::flat_hash_set<const TopologyKey*> HeldTerms::keys() const {
    absl::flat_hash_set<const TopologyKey*> keys;
    for (const auto& held : terms_) keys.insert(held.key);
    return keys;
}

}  // namespace berth::ledger
