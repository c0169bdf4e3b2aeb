#include "model/node_selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace berth::model {
namespace {

using base::bad_request;
using Op = Requirement::Op;

Result<Op> label_op(const std::string& name) {
    static constexpr std::pair<std::string_view, Op> kOps[] = {
        {"In", Op::In},      {"NotIn", Op::NotIn}, {"Exists", Op::Exists}, {"DoesNotExist", Op::DoesNotExist},
        {"Gt", Op::Greater}, {"Lt", Op::Less}};
    for (const auto& [known, op] : kOps) {
        if (name == known) return op;
    }
    return bad_request(fmt::format("\"{}\" is not a valid node selector operator", name.substr(0, 64)));
}

Result<Selector> on_labels(const std::vector<NodeSelectorRequirement>& requirements) {
    std::vector<Requirement> parsed;
    for (const auto& [key, name, values] : requirements) {
        const Op op = TRY(label_op(name));
        parsed.push_back(TRY(make_requirement(key, op, values)));
    }
    return Selector(std::move(parsed));
}

Result<FieldSelector> on_fields(const std::vector<NodeSelectorRequirement>& requirements) {
    std::vector<FieldSelector::Term> terms;
    for (const auto& [key, op, values] : requirements) {
        if (op != "In" && op != "NotIn")
            return bad_request(fmt::format("\"{}\" is not a valid operator of matchFields", op.substr(0, 64)));
        if (values.size() != 1)
            return bad_request(fmt::format("matchFields on \"{}\" needs exactly one value", key.substr(0, 128)));
        terms.push_back({key, values.front(), op == "In"});
    }
    return FieldSelector(std::move(terms));
}

}  // namespace

NodeTerm::NodeTerm(const NodeSelectorTerm& term) : empty_(term.match_expressions.empty() && term.match_fields.empty()) {
    auto labels = on_labels(term.match_expressions);
    auto fields = on_fields(term.match_fields);
    if (!labels) fault_ = labels.error().message;
    if (labels && !fields) fault_ = fields.error().message;
    if (!fault_.empty()) return;
    labels_ = *std::move(labels);
    fields_ = *std::move(fields);
}

bool NodeTerm::matches(std::string_view node_name, const Labels& labels) const {
    if (empty_ || !fault_.empty() || !labels_.matches(labels)) return false;
    if (node_name.empty()) return true;
    return fields_.matches(
        [&](std::string_view field) { return field == "metadata.name" ? node_name : std::string_view(); });
}

NodeSelector::NodeSelector(const std::vector<NodeSelectorTerm>& terms) : terms_(terms.begin(), terms.end()) {}

bool NodeSelector::matches(std::string_view node_name, const Labels& labels) const {
    return std::any_of(terms_.begin(), terms_.end(),
                       [&](const NodeTerm& term) { return term.matches(node_name, labels); });
}

}  // namespace berth::model
