#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/node_selector.h"
#include "model/selector.h"
#include "model/taints.h"

// Selectors, tolerations and taints out of documents; what cannot be understood is remembered in the Reader's trouble.
namespace berth::model {

class Reader;

std::vector<std::string> read_texts(const Reader& list);
LabelSelector read_label_selector(const Reader& from);
// Absent: nullopt. A selector that cannot be understood matches nothing.
std::optional<Selector> read_selector(const Reader& from);
NodeSelectorTerm read_node_selector_term(const Reader& from);
std::vector<NodeSelectorTerm> read_node_selector_terms(const Reader& list);
Toleration read_toleration(const Reader& from);
std::vector<Toleration> read_tolerations(const Reader& list);
std::vector<Taint> read_taints(const Reader& list);

}  // namespace berth::model
