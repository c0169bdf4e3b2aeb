#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/text_table.h"
#include "cli/whatif.h"

// What whatif prints.
namespace berth::cli {
namespace {

Json text_or_null(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

Json amounts(const model::Resources& resources) {
    std::map<std::string, std::string> sorted;
    resources.for_each([&](model::ResourceId id, int64_t amount) {
        sorted.emplace(model::resource_name(id), model::quantity_text(id, amount));
    });
    JsonObject out;
    for (const auto& [name, text] : sorted) out[name] = text;
    return out;
}

Json numbers(const std::map<std::string, int64_t>& values) {
    JsonObject out;
    for (const auto& [name, value] : values) out[name] = value;
    return out;
}

Json texts(const std::vector<std::string>& values) {
    JsonArray out;
    for (const auto& value : values) out.emplace_back(value);
    return out;
}

Json answer_document(const run::Placement& answer) {
    JsonObject rejected;
    for (const auto& [node, reasons] : answer.rejected) rejected[node] = texts(reasons);
    JsonObject charges;
    for (const auto& [name, resources] : answer.charges) charges[name] = amounts(resources);
    return JsonObject{
        {"kind", answer.is_reservation ? "Reservation" : "Pod"},
        {"namespace", text_or_null(answer.ns)},
        {"name", answer.name},
        {"scheduled", !answer.node.empty()},
        {"node", text_or_null(answer.node)},
        {"from", text_or_null(answer.from)},
        {"reservation", text_or_null(answer.reservation)},
        {"charges", charges},
        {"cpus", model::cpu_list_text(answer.which.cores.cpus)},
        {"numa", model::numa_document(answer.which.cores)},
        {"devices", model::device_record_document(answer.which.devices)},
        {"feasible", texts(answer.feasible)},
        {"scores", numbers(answer.scores)},
        {"reservationScores", numbers(answer.reservation_scores)},
        {"rejected", rejected},
        {"victims", texts(answer.victims)},
        {"message", text_or_null(answer.message)},
        {"error", text_or_null(answer.error)},
    };
}

std::string why(const run::Placement& answer, bool scores) {
    std::vector<std::string> parts;
    if (!answer.from.empty()) parts.push_back("was on " + answer.from);
    if (!answer.error.empty() || !answer.message.empty()) {
        parts.push_back(answer.error.empty() ? answer.message : answer.error);
    }
    if (!answer.which.cores.cpus.empty()) {
        parts.push_back(fmt::format("cpus {}", model::cpu_list_text(answer.which.cores.cpus)));
    }
    if (!answer.which.devices.empty()) parts.push_back(model::device_record_summary(answer.which.devices));
    if (!answer.victims.empty()) parts.push_back(fmt::format("evicts {}", fmt::join(answer.victims, ", ")));
    if (scores && !answer.scores.empty()) {
        std::vector<std::string> each;
        for (const auto& [node, score] : answer.scores) each.push_back(fmt::format("{}={}", node, score));
        parts.push_back(fmt::format("scores {}", fmt::join(each, " ")));
    }
    return fmt::format("{}", fmt::join(parts, "; "));
}

std::string dash(const std::string& text) {
    return text.empty() ? "-" : text;
}

Json drain_document(const std::optional<Drain>& drain) {
    if (!drain) return nullptr;
    JsonArray blocked;
    for (const auto& one : drain->blocked) blocked.push_back(JsonObject{{"pod", one.pod}, {"why", one.why}});
    return JsonObject{{"nodes", texts(drain->nodes)},     {"moved", texts(drain->moved)},
                      {"bare", texts(drain->bare)},       {"blocked", blocked},
                      {"staying", texts(drain->staying)}, {"reservations", texts(drain->reservations)}};
}

Json fit_document(const std::optional<Fit>& fit) {
    if (!fit) return nullptr;
    return JsonObject{
        {"count", fit->count}, {"all", fit->all}, {"nodes", numbers(fit->by_node)}, {"why", text_or_null(fit->why)}};
}

Json need_document(const std::optional<Need>& need) {
    if (!need) return nullptr;
    return JsonObject{{"nodes", need->nodes}, {"enough", need->enough}, {"refused", need->trial.refused}};
}

// " (a, b)", or nothing.
std::string in_brackets(const std::vector<std::string>& names) {
    return names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", "));
}

std::string drain_text(const Drain& drain) {
    std::string out = fmt::format("drain of {}: {} pods go", fmt::join(drain.nodes, ", "), drain.moved.size());
    out += fmt::format(", {} are blocked", drain.blocked.size());
    out += fmt::format(", {} stay with the node{}\n", drain.staying.size(), in_brackets(drain.staying));
    for (const auto& one : drain.blocked) out += fmt::format("  blocked: {}: {}\n", one.pod, one.why);
    if (!drain.bare.empty()) {
        out += fmt::format("  without a controller, so nobody makes them again: {}\n", fmt::join(drain.bare, ", "));
    }
    if (!drain.reservations.empty()) {
        out +=
            fmt::format("  reservations that are lost when the node goes: {}\n", fmt::join(drain.reservations, ", "));
    }
    return out;
}

std::string fit_text(const Fit& fit) {
    std::vector<std::string> parts;
    for (const auto& [node, count] : fit.by_node) parts.push_back(fmt::format("{} on {}", count, node));
    std::string out = fmt::format("fit: {}{} more{}\n", fit.all ? "at least " : "", fit.count, in_brackets(parts));
    if (!fit.why.empty()) out += fmt::format("  the next one: {}\n", fit.why);
    return out;
}

std::string need_text(const Need& need) {
    if (need.enough) return fmt::format("need: {} more nodes of this shape\n", need.nodes);
    return fmt::format("need: nodes of this shape do not help: with {} more {} do not fit\n", need.nodes,
                       need.trial.refused);
}

}  // namespace

bool all_fits(const WhatifReport& report) {
    const bool placed = std::all_of(report.answers.begin(), report.answers.end(),
                                    [](const auto& answer) { return !answer.node.empty() || answer.gated; });
    const bool moved = !report.drain || report.drain->blocked.empty();
    const bool fitted = !report.fit || report.fit->count >= report.fit_wanted;
    return placed && moved && fitted && (!report.need || report.need->enough);
}

Json whatif_document(const WhatifReport& report) {
    JsonArray results;
    for (const auto& answer : report.answers) results.push_back(answer_document(answer));
    JsonArray reservations;
    for (const auto& holding : report.holdings) {
        reservations.push_back(JsonObject{{"name", holding.name},
                                          {"phase", model::name_of(holding.phase)},
                                          {"node", text_or_null(holding.node)},
                                          {"allocatable", amounts(holding.allocatable)},
                                          {"allocated", amounts(holding.allocated)},
                                          {"cpus", model::cpu_list_text(holding.which.cores.cpus)},
                                          {"numa", model::numa_document(holding.which.cores)},
                                          {"devices", model::device_record_document(holding.which.devices)}});
    }
    return JsonObject{{"results", results},
                      {"reservations", reservations},
                      {"drain", drain_document(report.drain)},
                      {"fit", fit_document(report.fit)},
                      {"need", need_document(report.need)}};
}

std::string whatif_table(const WhatifReport& report, bool scores) {
    TextTable results({"KIND", "NAME", "NODE", "RESERVATION", "WHY"});
    for (const auto& answer : report.answers) {
        const std::string name = answer.ns.empty() ? answer.name : answer.ns + "/" + answer.name;
        results.add({answer.is_reservation ? "Reservation" : "Pod", name, dash(answer.node), dash(answer.reservation),
                     why(answer, scores)});
    }
    std::string text = report.answers.empty() ? "Nothing is pending.\n" : results.text();
    if (report.drain) text += "\n" + drain_text(*report.drain);
    if (report.fit) text += "\n" + fit_text(*report.fit);
    if (report.need) text += "\n" + need_text(*report.need);
    if (report.holdings.empty()) return text;
    TextTable table({"RESERVATION", "PHASE", "NODE", "ALLOCATABLE", "ALLOCATED"});
    for (const auto& holding : report.holdings) {
        table.add({holding.name, std::string(model::name_of(holding.phase)), dash(holding.node),
                   holding.allocatable.text(), holding.allocated.text()});
    }
    return text + "\n" + table.text();
}

}  // namespace berth::cli
