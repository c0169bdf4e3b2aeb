#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/field_selector.h"
#include "model/selector.h"

namespace berth::model {

// As objects write them: operators In, NotIn, Exists, DoesNotExist, Gt, Lt.
struct NodeSelectorRequirement {
    std::string key;
    std::string op;
    std::vector<std::string> values;
    bool operator==(const NodeSelectorRequirement&) const = default;
};

struct NodeSelectorTerm {
    std::vector<NodeSelectorRequirement> match_expressions;  // on labels
    std::vector<NodeSelectorRequirement> match_fields;       // on metadata.name: In or NotIn, one value
    bool operator==(const NodeSelectorTerm&) const = default;
};

// A term made ready for matching. An empty term and one that cannot be understood match no node; the latter says why.
class NodeTerm {
public:
    explicit NodeTerm(const NodeSelectorTerm& term);

    bool matches(std::string_view node_name, const Labels& labels) const;
    // Empty when the term was understood.
    const std::string& fault() const { return fault_; }

private:
    Selector labels_;
    FieldSelector fields_;
    std::string fault_;
    bool empty_ = false;
};

// Terms of which one must match. Without terms it matches no node.
class NodeSelector {
public:
    NodeSelector() = default;
    explicit NodeSelector(const std::vector<NodeSelectorTerm>& terms);

    bool matches(std::string_view node_name, const Labels& labels) const;
    const std::vector<NodeTerm>& terms() const { return terms_; }

private:
    std::vector<NodeTerm> terms_;
};

}  // namespace berth::model

namespace berth {
using model::NodeSelector;
using model::NodeSelectorRequirement;
using model::NodeSelectorTerm;
using model::NodeTerm;
}  // namespace berth
