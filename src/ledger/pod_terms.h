#pragma once

#include <string_view>

#include "base/string_map.h"
#include "model/pod.h"

namespace berth::ledger {

// The labels of the namespaces that are known.
using NamespaceLabels = base::StringMap<Labels>;

// Whether a placed pod's term speaks of a pod that asks: its namespace is listed, or its labels (none when the
// namespace is not known) match the namespace selector.
bool held_term_matches(const model::PodTerm& term, const NamespaceLabels& namespaces, std::string_view ns,
                       const Labels& labels);

// Whether an asking pod's term speaks of a placed pod. A namespace selector stands for the known namespaces that it
// matches; one that matches a namespace without labels matches every pod, known namespace or not (so does
// kube-scheduler v1.35).
bool asked_term_matches(const model::PodTerm& term, const NamespaceLabels& namespaces, std::string_view ns,
                        const Labels& labels);

// Equal but for the topology key.
bool same_pods(const model::PodTerm& a, const model::PodTerm& b);
// Of what same_pods compares.
size_t hash_of_pods(const model::PodTerm& term);

}  // namespace berth::ledger
