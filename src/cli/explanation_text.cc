#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/explanation.h"
#include "cli/text_table.h"

namespace berth::cli {
namespace {

// A large cluster's answer is read by its sums; the whole list is in the JSON form.
constexpr size_t kRowsShown = 40;
constexpr size_t kNamesShown = 3;

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

// "node-3", "17 nodes: node-0, node-1, node-2, ..."
std::string nodes_text(const std::vector<std::string>& nodes) {
    if (nodes.size() == 1) return nodes.front();
    const size_t named = std::min(nodes.size(), kNamesShown);
    return fmt::format("{} nodes: {}{}", nodes.size(),
                       fmt::join(nodes.begin(), nodes.begin() + static_cast<long>(named), ", "),
                       nodes.size() > named ? ", ..." : "");
}

// Nodes with the same score that are refused for the same are one row, where the first of them would stand.
std::string node_table(const Explanation& it) {
    std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> rows;  // score and reasons; nodes
    std::map<std::vector<std::string>, size_t> known;
    for (const auto& [node, blocks] : it.nodes) {
        std::vector<std::string> reasons;
        for (const auto& block : blocks) reasons.insert(reasons.end(), block.reasons.begin(), block.reasons.end());
        const auto score = it.scores.find(node);
        const std::vector<std::string> cells{score == it.scores.end() ? "-" : std::to_string(score->second),
                                             fmt::format("{}", fmt::join(reasons, "; "))};
        const auto at = known.try_emplace(cells, rows.size()).first->second;
        if (at == rows.size()) rows.push_back({cells, {}});
        rows[at].second.push_back(node);
    }
    TextTable table({"NODE", "SCORE", "WHY NOT"});
    for (size_t i = 0; i < std::min(rows.size(), kRowsShown); ++i) {
        table.add({nodes_text(rows[i].second), rows[i].first[0], rows[i].first[1]});
    }
    std::string text = table.text();
    if (rows.size() > kRowsShown)
        text += fmt::format("... and {} more rows; -o json lists all\n", rows.size() - kRowsShown);
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
        nearest.push_back(
            JsonObject{{"node", near.nodes.front()}, {"nodes", texts(near.nodes)}, {"changes", texts(near.changes)}});
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
                      {"leaving", texts(it.leaving)},
                      {it.is_reservation ? "owners" : "reservations", matches}};
}

std::string explanation_text(const Explanation& it) {
    std::string text = fmt::format("{} is {}: {}\n", title(it), it.state, it.summary);
    if (!it.victims.empty()) {
        text += fmt::format("Evicting {} would make room on {}.\n", fmt::join(it.victims, ", "), it.node);
    } else if (it.state == "Pending" && !it.steps.empty() && !it.node.empty() && it.leaving.empty()) {
        text += fmt::format("It would go to {}.\n", it.node);
    }
    if (!it.nearest.empty()) {
        text += "\nWhat would make it fit:\n";
        for (const auto& near : it.nearest) {
            text += fmt::format("  {}{}: {}\n", near.nodes.size() == 1 ? "on " : "on each of ", nodes_text(near.nodes),
                                fmt::join(near.changes, ", and "));
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
