#include "cli/whatif.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/config_file.h"
#include "cli/dump.h"
#include "cli/text_table.h"
#include "model/times.h"

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

Json outcome_document(const Placement& outcome) {
    JsonObject rejected;
    for (const auto& [node, reasons] : outcome.rejected) rejected[node] = texts(reasons);
    JsonObject charges;
    for (const auto& [name, resources] : outcome.charges) charges[name] = amounts(resources);
    return JsonObject{
        {"kind", outcome.is_reservation ? "Reservation" : "Pod"},
        {"namespace", text_or_null(outcome.ns)},
        {"name", outcome.name},
        {"scheduled", !outcome.node.empty()},
        {"node", text_or_null(outcome.node)},
        {"reservation", text_or_null(outcome.reservation)},
        {"charges", charges},
        {"feasible", texts(outcome.feasible)},
        {"scores", numbers(outcome.scores)},
        {"reservationScores", numbers(outcome.reservation_scores)},
        {"rejected", rejected},
        {"victims", texts(outcome.victims)},
        {"message", text_or_null(outcome.message)},
        {"error", text_or_null(outcome.error)},
    };
}

std::string why(const Placement& outcome, bool scores) {
    std::string text = outcome.error.empty() ? outcome.message : outcome.error;
    if (!outcome.victims.empty()) text += fmt::format("evicts {}", fmt::join(outcome.victims, ", "));
    if (!scores || outcome.scores.empty()) return text;
    std::vector<std::string> parts;
    for (const auto& [node, score] : outcome.scores) parts.push_back(fmt::format("{}={}", node, score));
    return fmt::format("{}{}scores {}", text, text.empty() ? "" : "; ", fmt::join(parts, " "));
}

std::string dash(const std::string& text) {
    return text.empty() ? "-" : text;
}

struct Flags {
    std::vector<std::string> files;
    std::string output = "table";
    std::string now;
    std::string config;
    bool scores = false;
    bool no_preemption = false;
};

Result<base::Time> time_of(const Flags& flags) {
    if (flags.now.empty()) return base::system_clock().wall();
    auto time = model::parse_time(flags.now);
    if (!time) return base::bad_request(fmt::format("--now: {}", time.error().message));
    return time;
}

// Reads every file; kinds that mean nothing here give one warning each.
Status load(const Flags& flags, World& world) {
    std::set<std::string> unknown;
    for (const auto& file : flags.files) {
        for (const auto& object : TRY(read_object_file(file))) {
            const auto known = world.put(object);
            if (!known) return base::bad_request(fmt::format("{}: {}", file, known.error().message));
            if (!*known) unknown.emplace(base::find_string(object, {"kind"}));
        }
    }
    for (const auto& kind : unknown) {
        const std::string what = kind.empty() ? "without a kind" : fmt::format("of kind \"{}\"", kind);
        fmt::print(stderr, "berth: warning: objects {} are ignored\n", what);
    }
    for (const auto& warning : world.warnings()) fmt::print(stderr, "berth: warning: {}\n", warning);
    return {};
}

int fail(const Error& error) {
    fmt::print(stderr, "berth: {}\n", error.message);
    return kFailed;
}

}  // namespace

Json whatif_document(const std::vector<Placement>& outcomes, const std::vector<Holding>& holdings) {
    JsonArray results;
    for (const auto& outcome : outcomes) results.push_back(outcome_document(outcome));
    JsonArray reservations;
    for (const auto& holding : holdings) {
        reservations.push_back(JsonObject{{"name", holding.name},
                                          {"phase", model::name_of(holding.phase)},
                                          {"node", text_or_null(holding.node)},
                                          {"allocatable", amounts(holding.allocatable)},
                                          {"allocated", amounts(holding.allocated)}});
    }
    return JsonObject{{"results", results}, {"reservations", reservations}};
}

std::string whatif_table(const std::vector<Placement>& outcomes, const std::vector<Holding>& holdings, bool scores) {
    TextTable results({"KIND", "NAME", "NODE", "RESERVATION", "WHY"});
    for (const auto& outcome : outcomes) {
        const std::string name = outcome.ns.empty() ? outcome.name : outcome.ns + "/" + outcome.name;
        results.add({outcome.is_reservation ? "Reservation" : "Pod", name, dash(outcome.node),
                     dash(outcome.reservation), why(outcome, scores)});
    }
    std::string text = outcomes.empty() ? "Nothing is pending.\n" : results.text();
    if (holdings.empty()) return text;
    TextTable table({"RESERVATION", "PHASE", "NODE", "ALLOCATABLE", "ALLOCATED"});
    for (const auto& holding : holdings) {
        table.add({holding.name, std::string(model::name_of(holding.phase)), dash(holding.node),
                   holding.allocatable.text(), holding.allocated.text()});
    }
    return text + "\n" + table.text();
}

int whatif(std::vector<std::string> words) {
    Flags flags;
    CommandLine line("Schedules what is pending in a dump of a cluster, offline, and says what happened and why.",
                     "berth whatif");
    line.option("-f,--filename", flags.files,
                "YAML or JSON files with nodes, pods, reservations...; - is standard input")
        .required();
    line.option("-o,--output", flags.output, "table or json").one_of({"table", "json"});
    line.option("--now", flags.now, "the time to decide at, RFC 3339; default: now");
    line.option("--config", flags.config, "a KubeSchedulerConfiguration, in place of the default profile");
    line.flag("--scores", flags.scores, "also print the score of every feasible node");
    line.flag("--no-preemption", flags.no_preemption, "evict nobody for a pod of higher priority");
    if (const auto code = line.parse(std::move(words))) return *code;
    const auto now = time_of(flags);
    if (!now) {
        fail(now.error());
        return kWrongUsage;
    }
    World world(*now);
    if (!flags.config.empty()) {
        auto config = read_configuration_file(flags.config);
        if (!config) return fail(config.error());
        world.use(std::move(config->profiles));
    }
    if (flags.no_preemption) world.forbid_preemption();
    if (const auto loaded = load(flags, world); !loaded) return fail(loaded.error());
    const auto outcomes = world.settle();
    if (flags.output == "json") {
        fmt::print("{}\n", base::to_text(whatif_document(outcomes, world.holdings())));
    } else {
        fmt::print("{}", whatif_table(outcomes, world.holdings(), flags.scores));
    }
    return kDone;
}

}  // namespace berth::cli
