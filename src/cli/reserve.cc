#include "cli/reserve.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/key_values.h"
#include "cli/live.h"
#include "cli/near_word.h"
#include "cli/output.h"
#include "cli/reservations.h"
#include "cli/until.h"
#include "model/quantity.h"
#include "model/resources.h"

namespace berth::cli {
namespace {

constexpr std::string_view kReservations = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";

struct Flags {
    ReserveFlags reserve;
    ServerFlags server;
    bool per_node = false;
    std::string nodes;              // a label selector
    Output output = Output::Table;  // a document: print them instead of creating them
    bool dry_run = false;
    bool wait = false;
    int timeout_s = 60;
};

Result<JsonObject> requests_of(const ReserveFlags& flags) {
    JsonObject out = TRY(amounts_given(flags.resources, "--resource"));
    if (out.empty()) return base::bad_request("nothing to reserve: give at least one --resource, e.g. -r cpu=4");
    return out;
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> out;
    size_t at = 0;
    for (size_t slash; (slash = text.find('/', at)) != std::string::npos; at = slash + 1) {
        out.push_back(text.substr(at, slash - at));
    }
    out.push_back(text.substr(at));
    return out;
}

// A pod names the controller that made it, as it spells itself: a reservation for any other would never be used.
Status makes_pods_itself(const std::string& kind) {
    if (kind.empty() || kind[0] < 'A' || kind[0] > 'Z') {
        return base::bad_request(
            fmt::format("--owner-controller: \"{}\" is not a kind: write it as in ReplicaSet", kind));
    }
    for (const auto& [maker, made] : {std::pair{"Deployment", "ReplicaSets"}, {"CronJob", "Jobs"}}) {
        if (kind != maker) continue;
        return base::bad_request(
            fmt::format("--owner-controller: the pods of a {} belong to its {}: name one of them, "
                        "or give --owner with the labels of its pods",
                        maker, made));
    }
    return {};
}

Result<JsonArray> owners_of(const ReserveFlags& flags) {
    JsonObject owner;
    if (!flags.owner_labels.empty()) {
        owner["labelSelector"] = JsonObject{{"matchLabels", TRY(key_values(flags.owner_labels, "--owner"))}};
    }
    if (!flags.owner_pod.empty()) {
        const auto parts = split(flags.owner_pod);
        if (parts.size() != 2) {
            return base::bad_request(fmt::format("--owner-pod: \"{}\" is not NAMESPACE/NAME", flags.owner_pod));
        }
        owner["object"] = JsonObject{{"kind", "Pod"}, {"namespace", parts[0]}, {"name", parts[1]}};
    }
    if (!flags.owner_controller.empty()) {
        const auto parts = split(flags.owner_controller);
        if (parts.size() != 3) {
            return base::bad_request(
                fmt::format("--owner-controller: \"{}\" is not KIND/NAMESPACE/NAME", flags.owner_controller));
        }
        TRY(makes_pods_itself(parts[0]));
        owner["controller"] = JsonObject{{"kind", parts[0]}, {"namespace", parts[1]}, {"name", parts[2]}};
    }
    if (owner.empty()) return base::bad_request("for whom? Give --owner KEY=VALUE, --owner-pod or --owner-controller");
    return JsonArray{owner};
}

Result<JsonObject> spec_of(const ReserveFlags& flags) {
    JsonObject pod{
        {"containers", JsonArray{JsonObject{{"name", "reserved"},
                                            {"image", "reserved"},
                                            {"resources", JsonObject{{"requests", TRY(requests_of(flags))}}}}}}};
    if (!flags.node_selector.empty()) pod["nodeSelector"] = TRY(key_values(flags.node_selector, "--node-selector"));
    if (!flags.node.empty()) pod["nodeName"] = flags.node;
    JsonObject spec{
        {"owners", TRY(owners_of(flags))}, {"template", JsonObject{{"spec", pod}}}, {"allocateOnce", !flags.reusable}};
    if (!flags.ttl.empty()) spec["ttl"] = flags.ttl;
    if (!flags.expires.empty()) spec["expires"] = flags.expires;
    if (!flags.policy.empty()) spec["allocatePolicy"] = flags.policy;
    if (flags.pre_allocation) spec["preAllocation"] = true;
    return spec;
}

Result<JsonArray> ask_nodes(link::ApiClient& server, const std::string& selector) {
    std::string path = "/api/v1/nodes";
    if (!selector.empty()) path += "?labelSelector=" + percent_encoded(selector);
    const Json list = TRY(ask_object(server, {"GET", path}));
    return list.at("items").as_array();
}

// A resource that no node has may come with the next node; one that is nearly written as one of theirs will not.
Status some_node_has(link::ApiClient& server, const std::vector<std::string>& resources) {
    std::vector<std::string> own;
    for (const auto& text : resources) {
        if (text.find('/') < text.find('=')) own.push_back(text.substr(0, text.find('=')));
    }
    if (own.empty()) return {};
    std::set<std::string> there;
    for (const auto& node : TRY(ask_nodes(server, ""))) {
        const Json* has = base::find(node, {"status", "allocatable"});
        if (has == nullptr || !has->is_object()) continue;
        for (const auto& [name, amount] : has->as_object()) there.emplace(name);
    }
    for (const auto& name : own) {
        const std::string meant = there.contains(name) ? "" : near_word(name, {there.begin(), there.end()});
        if (meant.empty()) continue;
        return base::bad_request(
            fmt::format("--resource: no node has \"{}\", and some have {}: did you mean that?", name, meant));
    }
    return {};
}

Result<std::vector<std::string>> node_names(link::ApiClient& server, const std::string& selector) {
    std::vector<std::string> out;
    for (const auto& node : TRY(ask_nodes(server, selector))) {
        out.emplace_back(base::find_string(node, {"metadata", "name"}));
    }
    if (out.empty()) {
        return base::bad_request(selector.empty() ? "there are no nodes"
                                                  : fmt::format("no node has the labels {}", selector));
    }
    return out;
}

Status create_all(link::ApiClient& server, const std::vector<Json>& objects, const Flags& flags) {
    size_t made = 0;
    for (const auto& object : objects) {
        const auto name = base::find_string(object, {"metadata", "name"});
        const auto answer = ask_object(
            server,
            {"POST", fmt::format("{}{}", kReservations, flags.dry_run ? "?dryRun=All" : ""), base::to_text(object)});
        if (!answer) {
            return base::bad_request(fmt::format("reservation \"{}\": {} ({} of {} were created before)", name,
                                                 answer.error().message, made, objects.size()));
        }
        ++made;
        fmt::print("reservation/{} created{}\n", name, flags.dry_run ? " (server dry run)" : "");
        std::fflush(stdout);
    }
    return {};
}

// Follows reservations until each can be drawn from, or never will be.
class Progress {
public:
    explicit Progress(const std::vector<Json>& objects) {
        for (const auto& object : objects) open_[std::string(base::find_string(object, {"metadata", "name"}))];
    }
    // Whether there is nothing more to wait for.
    bool see(const Json& object, bool gone) {
        const auto found = open_.find(base::find_string(object, {"metadata", "name"}));
        if (found == open_.end()) return false;
        if (gone) return end(found, "was deleted");
        auto& [seen, why_not] = found->second;
        seen = true;
        const auto phase = base::find_string(object, {"status", "phase"});
        const bool placed = !phase.empty() && phase != "Pending";
        std::string why = condition_message(object, placed ? "Ready" : "Scheduled");
        if (placed && (phase != "Waiting" || why != why_not)) {
            const auto node = base::find_string(object, {"status", "nodeName"});
            fmt::print("reservation/{} {}{}{}\n", found->first, phase, node.empty() ? "" : " on ", node);
            std::fflush(stdout);
        }
        if (!placed || phase == "Waiting") {
            why_not = std::move(why);
            return false;
        }
        return end(found, phase == "Failed" ? fmt::format("has failed: {}", why) : "");
    }
    // Who was deleted before the list was made is in none.
    bool listed() {
        for (auto at = open_.begin(); at != open_.end();) {
            const auto next = std::next(at);
            if (!at->second.seen) end(at, "was deleted");
            at = next;
        }
        return open_.empty();
    }
    Status outcome(size_t of, int timeout_s) const {
        if (!failed_.empty()) return base::conflict(failed_);
        if (open_.empty()) return {};
        const std::string& trouble = open_.begin()->second.why_not;
        return Error{Reason::Timeout, fmt::format("{} of {} are not available after {} s{}{}", open_.size(), of,
                                                  timeout_s, trouble.empty() ? "" : ": ", trouble)};
    }

private:
    struct Entry {
        bool seen = false;
        std::string why_not;  // it is not available yet
    };
    using Open = std::map<std::string, Entry, std::less<>>;  // by name

    bool end(Open::iterator found, std::string_view failure) {
        if (!failure.empty() && failed_.empty()) failed_ = fmt::format("reservation {}: {}", found->first, failure);
        open_.erase(found);
        return open_.empty();
    }

    Open open_;
    std::string failed_;  // the first that never will be
};

Status wait_for(link::ApiClient& server, const std::vector<Json>& objects, int timeout_s) {
    Progress progress(objects);
    until(
        server, {"scheduling.koordinator.sh", "v1alpha1", "reservations"}, timeout_s,
        [&](const Json& object, bool gone) { return progress.see(object, gone); }, [&] { return progress.listed(); });
    return progress.outcome(objects.size(), timeout_s);
}

// Flags that do not go together: one of them would be ignored.
std::optional<std::string> clash_of(const Flags& flags) {
    if (flags.per_node && !flags.reserve.node.empty()) return "give --node or --per-node, not both";
    if (flags.per_node && flags.reserve.count != 1) return "give --count or --per-node, not both";
    if (!flags.per_node && !flags.nodes.empty()) {
        return "--nodes goes with --per-node; for one reservation on such nodes give --node-selector";
    }
    return std::nullopt;
}

Status run(const Flags& flags) {
    std::vector<std::string> nodes;
    std::optional<Connection> connection;
    const bool offline = is_document(flags.output) && !flags.per_node;
    if (!offline) {
        connection.emplace(TRY(open_connection(flags.server)));
        TRY(some_node_has(*connection->server, flags.reserve.resources));
    }
    if (flags.per_node) nodes = TRY(node_names(*connection->server, flags.nodes));
    const auto objects = TRY(reservations_for(flags.reserve, nodes));
    if (is_document(flags.output)) {
        JsonArray items(objects.begin(), objects.end());
        print_document(JsonObject{{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}}, flags.output);
        return {};
    }
    TRY(create_all(*connection->server, objects, flags));
    if (!flags.wait || flags.dry_run) return {};
    return wait_for(*connection->server, objects, flags.timeout_s);
}

}  // namespace

Result<std::vector<Json>> reservations_for(const ReserveFlags& flags, const std::vector<std::string>& nodes) {
    if (!flags.ttl.empty() && !flags.expires.empty()) return base::bad_request("give --ttl or --expires, not both");
    if (!flags.node.empty() && !nodes.empty()) return base::bad_request("give --node or --per-node, not both");
    if (flags.count < 1) return base::bad_request(fmt::format("--count: {} is less than 1", flags.count));
    const JsonObject labels = TRY(key_values(flags.labels, "--label"));
    std::vector<Json> out;
    const auto add = [&](const std::string& name, const ReserveFlags& its) -> Status {
        JsonObject meta{{"name", name}};
        if (!labels.empty()) meta["labels"] = labels;
        out.push_back(JsonObject{{"apiVersion", "scheduling.koordinator.sh/v1alpha1"},
                                 {"kind", "Reservation"},
                                 {"metadata", meta},
                                 {"spec", TRY(spec_of(its))}});
        return {};
    };
    for (const auto& node : nodes) {
        ReserveFlags its = flags;
        its.node = node;
        TRY(add(flags.name + "-" + node, its));
    }
    if (!nodes.empty()) return out;
    if (flags.count == 1) TRY(add(flags.name, flags));
    for (int i = 0; flags.count > 1 && i < flags.count; ++i) TRY(add(fmt::format("{}-{}", flags.name, i), flags));
    return out;
}

namespace {

int create(std::vector<std::string> words) {
    Flags flags;
    auto& wanted = flags.reserve;
    CommandLine line(
        "Makes reservations: room on nodes that only their owners may use. Their life goes on with\n"
        "  berth reserve list       what there is, what was drawn, and until when\n"
        "  berth reserve extend     let some end later\n"
        "  berth reserve release    give back what some hold\n"
        "and `berth reserve create NAME` makes one that is called as one of these.",
        "berth reserve");
    line.option("name", wanted.name, "of the reservation; a number or a node's name follows it when there are several")
        .required();
    line.option("-r,--resource", wanted.resources, "what to hold, e.g. -r cpu=4 -r memory=8Gi");
    line.option("--owner", wanted.owner_labels, "KEY=VALUE: pods with all of these labels may use it");
    line.option("--owner-pod", wanted.owner_pod, "NAMESPACE/NAME: that pod may use it");
    line.option("--owner-controller", wanted.owner_controller, "KIND/NAMESPACE/NAME: its pods may use it");
    line.flag("--reusable", wanted.reusable, "for many owners, one after the other or side by side");
    line.option("--policy", wanted.policy, "Aligned or Restricted").one_of({"Aligned", "Restricted"});
    line.option("--ttl", wanted.ttl, "how long it lasts, e.g. 30m; 0: for ever; default 24h");
    line.option("--expires", wanted.expires, "when it ends, RFC 3339");
    line.flag("--pre-allocate", wanted.pre_allocation, "on a full node wait for room instead of going on searching");
    line.option("--label", wanted.labels, "KEY=VALUE of the reservation itself");
    line.option("--node", wanted.node, "on this node");
    line.option("--node-selector", wanted.node_selector, "KEY=VALUE: on nodes with these labels");
    line.option("--count", wanted.count, "how many");
    line.flag("--per-node", flags.per_node, "one on every node");
    line.option("-l,--nodes", flags.nodes, "with --per-node: only nodes that match this selector");
    line.flag("--dry-run", flags.dry_run, "let the server check them, store nothing");
    output_option(line, flags.output, {Output::Json, Output::Yaml}, "print them instead of creating them");
    line.flag("--wait", flags.wait, "until each is available");
    line.option("--timeout", flags.timeout_s, "seconds to wait").within(1, 86400);
    add_server_flags(line, flags.server);
    line.example("berth reserve web -r cpu=4 -r memory=8Gi --owner app=web --ttl 2h --wait",
                 "room for pods with app=web");
    line.example("berth reserve night --per-node -r memory=1Gi --owner job-name=night --reusable",
                 "some on every node");
    line.example("berth reserve list", "what is held, for whom, until when");
    if (const auto code = line.parse(std::move(words))) return *code;
    const auto fail = [](const Error& error, int code) {
        fmt::print(stderr, "berth reserve: {}\n", error.message);
        return code;
    };
    // What the flags themselves say wrong needs no server.
    if (const auto clash = clash_of(flags)) return fail(base::bad_request(*clash), kWrongUsage);
    if (const auto objects = reservations_for(wanted, {}); !objects) return fail(objects.error(), kWrongUsage);
    const auto done = run(flags);
    return done ? kDone : fail(done.error(), kFailed);
}

}  // namespace

int reserve(std::vector<std::string> words) {
    const std::string first = words.empty() ? "" : words.front();
    const auto rest = [&] { return std::vector<std::string>(words.begin() + 1, words.end()); };
    if (first == "list") return reserve_list(rest());
    if (first == "extend") return reserve_extend(rest());
    if (first == "release") return reserve_release(rest());
    return create(first == "create" ? rest() : std::move(words));
}

}  // namespace berth::cli
