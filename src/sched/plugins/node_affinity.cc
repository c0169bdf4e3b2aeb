#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "model/node_selector.h"
#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

constexpr PluginId kPlugin = PluginId::NodeAffinity;
using NameSet = std::set<std::string, std::less<>>;

// The names that one term's matchFields leave, or nullopt when it names none.
std::optional<NameSet> names_in(const model::NodeSelectorTerm& term) {
    std::optional<NameSet> names;
    for (const auto& field : term.match_fields) {
        if (field.key != "metadata.name" || field.op != "In") continue;
        NameSet given(field.values.begin(), field.values.end());
        if (names) std::erase_if(*names, [&](const auto& name) { return !given.contains(name); });
        if (!names) names = std::move(given);
    }
    return names;
}

// The nodes that required matchFields speak of, when every term names some: the others are refused before any filter.
std::optional<NameSet> named_nodes(const model::PodSpec& spec) {
    if (!spec.required_nodes || spec.required_nodes->empty()) return std::nullopt;
    NameSet all;
    for (const auto& term : *spec.required_nodes) {
        auto names = names_in(term);
        if (!names) return std::nullopt;
        all.merge(*names);
    }
    return all;
}

bool has_labels(const model::Labels& labels, const model::Labels& wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto& entry) {
        const std::string* value = labels.find(entry.first);
        return value && *value == entry.second;
    });
}

class NamedNodesFilter final : public Filter {
public:
    PluginId plugin() const override { return kPlugin; }
    bool by_node_alone() const override { return true; }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        const auto names = named_nodes(*ask.spec);
        if (!names) return;
        if (names->empty()) return strikes.refuse(strikes.refusal(kPlugin, {"pod affinity terms conflict"}, true));
        const auto refused = strikes.refusal(kPlugin, {"node(s) didn't satisfy plugin(s) [NodeAffinity]"}, true);
        strikes.each_open([&](Row row) {
            if (!names->contains(ledger.name(row))) strikes.strike(row, refused);
        });
    }
};

class NodeAffinityFilter final : public Filter {
public:
    explicit NodeAffinityFilter(AddedAffinity added) : added_(std::move(added)) {}
    PluginId plugin() const override { return kPlugin; }
    bool by_node_alone() const override { return true; }
    void strike(const Ask& ask, const View& ledger, Strikes& strikes) const override {
        if (added_.required) strike_unadded(ledger, strikes);
        const auto& spec = *ask.spec;
        if (spec.node_selector.empty() && !spec.required_nodes) return;
        const auto refused = strikes.refusal(kPlugin, {"node(s) didn't match Pod's node affinity/selector"}, true);
        const model::NodeSelector required(spec.required_nodes.value_or(std::vector<model::NodeSelectorTerm>()));
        strikes.each_open([&](Row row) {
            const auto& labels = ledger.node(row).meta.labels;
            const bool fits = has_labels(labels, spec.node_selector) &&
                              (!spec.required_nodes || required.matches(ledger.name(row), labels));
            if (!fits) strikes.strike(row, refused);
        });
    }

private:
    void strike_unadded(const View& ledger, Strikes& strikes) const {
        const auto refused = strikes.refusal(kPlugin, {"node(s) didn't match scheduler-enforced node affinity"}, true);
        const model::NodeSelector required(*added_.required);
        strikes.each_open([&](Row row) {
            if (!required.matches(ledger.name(row), ledger.node(row).meta.labels)) strikes.strike(row, refused);
        });
    }

    AddedAffinity added_;
};

class NodeAffinityScorer final : public NodeScorer {
public:
    explicit NodeAffinityScorer(AddedAffinity added) : added_(std::move(added)) {}
    PluginId plugin() const override { return kPlugin; }
    bool concerns(const Ask& ask, const View&) const override {
        return !ask.spec->preferred_nodes.empty() || !added_.preferred.empty();
    }
    std::string fault(const Ask& ask) const override {
        const auto& fault = ask.spec->preferred_fault;
        return fault.empty() ? "" : fmt::format("running PreScore plugin \"{}\": {}", name_of(kPlugin), fault);
    }
    Scaling scaling() const override { return Scaling::ByMax; }
    void raw(const Ask& ask, const View& ledger, std::span<const Row> rows, std::span<int64_t> points) const override {
        std::vector<std::pair<int64_t, model::NodeTerm>> terms;
        for (const auto* list : {&ask.spec->preferred_nodes, &added_.preferred}) {
            for (const auto& preferred : *list) terms.emplace_back(preferred.weight, model::NodeTerm(preferred.term));
        }
        for (size_t i = 0; i < rows.size(); ++i) {
            points[i] = 0;
            for (const auto& [weight, term] : terms) {
                if (term.matches(ledger.name(rows[i]), ledger.node(rows[i]).meta.labels)) points[i] += weight;
            }
        }
    }

private:
    AddedAffinity added_;
};

}  // namespace

std::shared_ptr<const Filter> named_nodes_filter() {
    return std::make_shared<NamedNodesFilter>();
}

std::shared_ptr<const Filter> node_affinity_filter(AddedAffinity added) {
    return std::make_shared<NodeAffinityFilter>(std::move(added));
}

std::shared_ptr<const Scorer> node_affinity_scorer(AddedAffinity added) {
    return std::make_shared<NodeAffinityScorer>(std::move(added));
}

}  // namespace berth::sched::plugins
