#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/explanation.h"
#include "cli/text_table.h"

namespace berth::cli {
namespace {

// A large cluster's answer is read by its sums; the whole list is in the JSON form.
constexpr size_t kNodesShown = 40;

Json texts(const std::vector<std::string>& values) {
    JsonArray out;
    for (const auto& value : values) out.emplace_back(value);
    return out;
}

Json text_or_null(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

std::string title(const Explanation& it) {
    return it.is_reservation ? fmt::format("Reservation {}", it.name) : fmt::format("Pod {}/{}", it.ns, it.name);
}

std::string node_table(const Explanation& it) {
    TextTable table({"NODE", "SCORE", "WHY NOT"});
    size_t shown = 0;
    for (const auto& [node, blocks] : it.nodes) {
        if (++shown > kNodesShown) break;
        std::vector<std::string> reasons;
        for (const auto& block : blocks) reasons.insert(reasons.end(), block.reasons.begin(), block.reasons.end());
        const auto score = it.scores.find(node);
        table.add({node, score == it.scores.end() ? "-" : std::to_string(score->second),
                   fmt::format("{}", fmt::join(reasons, "; "))});
    }
    std::string text = table.text();
    if (it.nodes.size() > kNodesShown) {
        text += fmt::format("... and {} more nodes; -o json lists all\n", it.nodes.size() - kNodesShown);
    }
    return text;
}

}  // namespace

Json explanation_document(const Explanation& it) {
    JsonArray steps;
    for (const auto& step : it.steps) {
        steps.push_back(JsonObject{{"filter", step.filter}, {"in", step.in}, {"out", step.out}});
    }
    JsonObject nodes;
    for (const auto& [name, blocks] : it.nodes) {
        JsonObject refused;
        for (const auto& block : blocks) refused[sched::name_of(block.filter)] = texts(block.reasons);
        const auto score = it.scores.find(name);
        nodes[name] = JsonObject{{"feasible", blocks.empty()},
                                 {"score", score == it.scores.end() ? Json(nullptr) : Json(score->second)},
                                 {"refusedBy", refused}};
    }
    JsonArray nearest;
    for (const auto& near : it.nearest) {
        nearest.push_back(JsonObject{{"node", near.node}, {"changes", texts(near.changes)}});
    }
    JsonArray matches;
    for (const auto& match : it.matches) matches.push_back(JsonObject{{"name", match.name}, {"state", match.state}});
    return JsonObject{{"kind", it.is_reservation ? "Reservation" : "Pod"},
                      {"namespace", text_or_null(it.ns)},
                      {"name", it.name},
                      {"state", it.state},
                      {"summary", it.summary},
                      {"node", text_or_null(it.node)},
                      {"filters", steps},
                      {"nodes", nodes},
                      {"nearest", nearest},
                      {"victims", texts(it.victims)},
                      {it.is_reservation ? "owners" : "reservations", matches}};
}

std::string explanation_text(const Explanation& it) {
    std::string text = fmt::format("{} is {}: {}\n", title(it), it.state, it.summary);
    if (!it.victims.empty()) {
        text += fmt::format("Evicting {} would make room on {}.\n", fmt::join(it.victims, ", "), it.node);
    } else if (!it.steps.empty() && !it.node.empty()) {
        text += fmt::format("It would go to {}.\n", it.node);
    }
    if (!it.nearest.empty()) {
        text += "\nWhat would make it fit:\n";
        for (const auto& near : it.nearest) {
            text += fmt::format("  on {}: {}\n", near.node, fmt::join(near.changes, ", and "));
        }
    }
    if (!it.matches.empty()) {
        text += it.is_reservation ? "\nIts owners:\n" : "\nReservations it owns:\n";
        for (const auto& match : it.matches) text += fmt::format("  {}: {}\n", match.name, match.state);
    }
    if (it.steps.empty()) return text;
    TextTable steps({"FILTER", "NODES IN", "NODES OUT"});
    for (const auto& step : it.steps) {
        if (step.in != step.out) steps.add({step.filter, std::to_string(step.in), std::to_string(step.out)});
    }
    if (it.scores.size() < it.nodes.size()) text += "\n" + steps.text();
    return text + "\n" + node_table(it);
}

}  // namespace berth::cli
