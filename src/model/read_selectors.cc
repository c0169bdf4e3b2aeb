#include "model/read_selectors.h"

#include "model/meta.h"
#include "model/reader.h"

namespace berth::model {
namespace {

std::vector<NodeSelectorRequirement> read_requirements(const Reader& list) {
    std::vector<NodeSelectorRequirement> out;
    list.each([&](const Reader& item) {
        out.push_back(
            {std::string(item["key"].text()), std::string(item["operator"].text()), read_texts(item["values"])});
    });
    return out;
}

}  // namespace

std::vector<std::string> read_texts(const Reader& list) {
    std::vector<std::string> texts;
    list.each([&](const Reader& item) { texts.emplace_back(item.text()); });
    return texts;
}

LabelSelector read_label_selector(const Reader& from) {
    LabelSelector out;
    out.match_labels = read_labels(from["matchLabels"]);
    const Reader expressions = from["matchExpressions"];
    expressions.each([&](const Reader& item) {
        out.match_expressions.push_back(
            {std::string(item["key"].text()), std::string(item["operator"].text()), read_texts(item["values"])});
    });
    return out;
}

std::optional<Selector> read_selector(const Reader& from) {
    if (!from.present()) return std::nullopt;
    auto selector = to_selector(read_label_selector(from));
    if (selector) return std::move(*selector);
    from.wrong(selector.error().message);
    return Selector::nothing();
}

NodeSelectorTerm read_node_selector_term(const Reader& from) {
    return {read_requirements(from["matchExpressions"]), read_requirements(from["matchFields"])};
}

std::vector<NodeSelectorTerm> read_node_selector_terms(const Reader& list) {
    std::vector<NodeSelectorTerm> terms;
    list.each([&](const Reader& item) { terms.push_back(read_node_selector_term(item)); });
    return terms;
}

Toleration read_toleration(const Reader& from) {
    Toleration out{std::string(from["key"].text()), std::string(from["operator"].text()),
                   std::string(from["value"].text()), std::string(from["effect"].text()), std::nullopt};
    if (const Reader seconds = from["tolerationSeconds"]; seconds.present()) out.toleration_seconds = seconds.integer();
    return out;
}

std::vector<Toleration> read_tolerations(const Reader& list) {
    std::vector<Toleration> out;
    list.each([&](const Reader& item) { out.push_back(read_toleration(item)); });
    return out;
}

std::vector<Taint> read_taints(const Reader& list) {
    std::vector<Taint> out;
    list.each([&](const Reader& item) {
        out.push_back(
            {std::string(item["key"].text()), std::string(item["value"].text()), std::string(item["effect"].text())});
    });
    return out;
}

}  // namespace berth::model
