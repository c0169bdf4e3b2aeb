#include "ledger/pod_terms.h"

#include <absl/hash/hash.h>

#include <algorithm>

namespace berth::ledger {
namespace {

bool lists(const model::PodTerm& term, std::string_view ns) {
    return std::binary_search(term.namespaces.begin(), term.namespaces.end(), ns);
}

bool selects(const model::PodTerm& term, const Labels& labels) {
    return term.selector && term.selector->matches(labels);
}

size_t hash_of(const Selector& selector) {
    size_t hash = selector.matches_nothing();
    for (const auto& requirement : selector.requirements()) {
        hash = absl::HashOf(hash, requirement.key, static_cast<int>(requirement.op), requirement.values);
    }
    return hash;
}

}  // namespace

bool held_term_matches(const model::PodTerm& term, const NamespaceLabels& namespaces, std::string_view ns,
                       const Labels& labels) {
    if (!selects(term, labels)) return false;
    if (lists(term, ns)) return true;
    if (!term.ns_selector) return false;
    const auto known = namespaces.find(ns);
    return term.ns_selector->matches(known == namespaces.end() ? Labels() : known->second);
}

bool asked_term_matches(const model::PodTerm& term, const NamespaceLabels& namespaces, std::string_view ns,
                        const Labels& labels) {
    if (!selects(term, labels)) return false;
    if (lists(term, ns)) return true;
    if (!term.ns_selector) return false;
    if (term.ns_selector->matches(Labels())) return true;
    const auto known = namespaces.find(ns);
    return known != namespaces.end() && term.ns_selector->matches(known->second);
}

bool same_pods(const model::PodTerm& a, const model::PodTerm& b) {
    return a.namespaces == b.namespaces && a.selector == b.selector && a.ns_selector == b.ns_selector;
}

size_t hash_of_pods(const model::PodTerm& term) {
    const size_t selector = term.selector ? hash_of(*term.selector) : 0;
    const size_t by_labels = term.ns_selector ? hash_of(*term.ns_selector) + 1 : 0;
    return absl::HashOf(term.namespaces, selector, by_labels);
}

}  // namespace berth::ledger
