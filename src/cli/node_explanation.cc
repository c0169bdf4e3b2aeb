#include "cli/node_explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/phrases.h"
#include "cli/text_table.h"
#include "model/node_reservation.h"

namespace berth::cli {
namespace {

using ledger::View;
using model::ResourceId;

std::string state_of(const model::Node& node, const View& ledger, ledger::Row row) {
    std::vector<std::string> closed;
    if (node.unschedulable) closed.emplace_back("it is cordoned");
    for (const auto& taint : node.taints) {
        if (taint.effect == "PreferNoSchedule") continue;
        closed.push_back(fmt::format("only pods that tolerate {}{}{}:{} come to it", taint.key,
                                     taint.value.empty() ? "" : "=", taint.value, taint.effect));
    }
    if (!node.complaint.empty()) closed.push_back(node.complaint);
    if (ledger.at(row).unreadable > 0) closed.emplace_back("a pod on it draws from nobody knows what");
    return closed.empty() ? "it takes pods" : fmt::format("{}", fmt::join(closed, "; "));
}

// What of its request a pod is charged to reservations.
model::Resources charged(const ledger::PodEntry& pod) {
    model::Resources out;
    pod.each_charge([&](ledger::ReservationIndex, const model::Resources& amount) { out.add(amount); });
    return out;
}

void add_pods(const View& ledger, ledger::Row row, NodeExplanation& out) {
    for (const auto index : ledger.at(row).pods) {
        const auto& pod = ledger.pod(index);
        std::vector<std::string> draws;
        pod.each_charge([&](ledger::ReservationIndex from, const model::Resources& amount) {
            draws.push_back(
                fmt::format("{} from {}", amounts_text(amount), ledger.reservation(from).object->meta.name));
        });
        out.pods.push_back({fmt::format("{}/{}", pod.ns(), pod.name.view()), amounts_text(pod.spec->requests),
                            fmt::format("{}", fmt::join(draws, ", ")), pod.terminating});
    }
    std::sort(out.pods.begin(), out.pods.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

void add_reservations(const View& ledger, ledger::Row row, NodeExplanation& out) {
    for (const auto index : ledger.at(row).reservations) {
        const auto& entry = ledger.reservation(index);
        out.reservations.push_back({entry.object->meta.name, entry.waiting() ? "Waiting" : "Available",
                                    amounts_text(entry.allocatable), amounts_text(entry.charged),
                                    amounts_text(idle_of(entry.allocatable, entry.charged)),
                                    owners_text(*entry.object)});
    }
    std::sort(out.reservations.begin(), out.reservations.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
}

NodeExplanation::Amounts amounts_of(const View& ledger, ledger::Row row, ResourceId id) {
    NodeExplanation::Amounts out;
    out.resource = id;
    const auto view = model::view_of(ledger.node(row));
    out.outside = view.held.get(id);
    out.allocatable = view.allocatable.get(id) + out.outside;
    for (const auto index : ledger.at(row).pods) {
        out.pods += ledger.pod(index).spec->requests.get(id) - charged(ledger.pod(index)).get(id);
    }
    for (const auto index : ledger.at(row).reservations) {
        const auto& entry = ledger.reservation(index);
        out.reserved += entry.allocatable.get(id);
        out.drawn += entry.charged.get(id);
        out.idle += std::max<int64_t>(0, entry.allocatable.get(id) - entry.charged.get(id));
    }
    out.free = ledger.free(row, id);
    return out;
}

}  // namespace

Result<NodeExplanation> explain_node(const View& ledger, const std::string& name) {
    const ledger::Row row = ledger.row_of(name);
    if (row == ledger::kNoRow) return base::not_found(fmt::format("nodes \"{}\" not found", name));
    NodeExplanation out;
    out.name = name;
    out.state = state_of(ledger.node(row), ledger, row);
    std::map<std::string, ResourceId> named;
    const auto add = [&](ResourceId id, int64_t) { named.emplace(model::resource_name(id), id); };
    ledger.node(row).allocatable.for_each(add);
    for (const auto index : ledger.at(row).pods) ledger.pod(index).spec->requests.for_each(add);
    for (const auto& [text, id] : named) out.amounts.push_back(amounts_of(ledger, row, id));
    add_pods(ledger, row, out);
    add_reservations(ledger, row, out);
    return out;
}

Json node_document(const NodeExplanation& node) {
    JsonObject amounts;
    for (const auto& of : node.amounts) {
        const auto text = [&](int64_t value) { return model::quantity_text(of.resource, value); };
        amounts[model::resource_name(of.resource)] = JsonObject{{"allocatable", text(of.allocatable)},
                                                                {"keptOutside", text(of.outside)},
                                                                {"pods", text(of.pods)},
                                                                {"reserved", text(of.reserved)},
                                                                {"drawn", text(of.drawn)},
                                                                {"idle", text(of.idle)},
                                                                {"free", text(of.free)}};
    }
    JsonArray pods, held;
    for (const auto& pod : node.pods) {
        pods.push_back(
            JsonObject{{"name", pod.name}, {"requests", pod.requests}, {"draws", pod.draws}, {"leaving", pod.leaving}});
    }
    for (const auto& one : node.reservations) {
        held.push_back(JsonObject{{"name", one.name},
                                  {"phase", one.phase},
                                  {"reserved", one.reserved},
                                  {"drawn", one.drawn},
                                  {"idle", one.idle},
                                  {"owners", one.owners}});
    }
    return JsonObject{{"kind", "Node"},       {"name", node.name}, {"summary", node.state},
                      {"resources", amounts}, {"pods", pods},      {"reservations", held}};
}

std::string node_text(const NodeExplanation& node) {
    std::string text = fmt::format("Node {}: {}\n\n", node.name, node.state);
    TextTable table({"RESOURCE", "ALLOCATABLE", "KEPT OUTSIDE", "PODS", "RESERVED", "DRAWN", "IDLE", "FREE"});
    for (const auto& of : node.amounts) {
        const auto amount = [&](int64_t value) { return model::quantity_text(of.resource, value); };
        table.add({std::string(model::resource_name(of.resource)), amount(of.allocatable), amount(of.outside),
                   amount(of.pods), amount(of.reserved), amount(of.drawn), amount(of.idle), amount(of.free)});
    }
    text += table.text();
    if (!node.reservations.empty()) {
        TextTable held({"RESERVATION", "PHASE", "RESERVED", "DRAWN", "IDLE", "FOR"});
        for (const auto& one : node.reservations) {
            held.add({one.name, one.phase, one.reserved, one.drawn, one.idle, one.owners});
        }
        text += "\n" + held.text();
    }
    if (node.pods.empty()) return text + "\nIt has no pods.\n";
    TextTable pods({"POD", "REQUESTS", "DRAWS", ""});
    for (const auto& pod : node.pods) {
        pods.add({pod.name, pod.requests, pod.draws.empty() ? "-" : pod.draws, pod.leaving ? "leaving" : ""});
    }
    return text + "\n" + pods.text();
}

}  // namespace berth::cli
