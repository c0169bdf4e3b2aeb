#include "attacker.h"

#include <fmt/format.h>

namespace berth::attack {
namespace {

const std::string kPods = "/api/v1/namespaces/default/pods";
const std::string kNodes = "/api/v1/nodes";
const std::string kTopologies = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies";
const std::string kCoresKept = "scheduling.koordinator.sh/resource-status";
const std::string kReservations = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";

api::PeerCertificate identity(const std::string& who) {
    if (who == "scheduler") return {"berth-scheduler", {"berth:schedulers"}};
    if (who == "controller") return {"system:controller:some", {"berth:controllers"}};
    if (who == "importer") return {"berth:up", {"system:masters", "berth:importers"}};
    return {"admin", {"system:masters"}};
}

// {"spec": {"a": 1}} -> [{"op": "add", "path": "/spec/a", "value": 1}], for what is an object in the stored one too.
void as_steps(const Json& body, const std::string& path, JsonArray& steps) {
    for (const auto& [key, value] : body.as_object()) {
        std::string name(key);
        for (size_t i = 0; (i = name.find('/', i)) != std::string::npos; i += 2) name.replace(i, 1, "~1");
        const bool deeper = value.is_object() && (key == "spec" || key == "status" || key == "metadata");
        if (deeper) {
            as_steps(value, path + "/" + name, steps);
        } else {
            steps.push_back(JsonObject{{"op", "add"}, {"path", path + "/" + name}, {"value", value}});
        }
    }
}

}  // namespace

Attacker::Attacker(uint64_t seed) : guard_(*front_.store), random_(seed) {
    front_.store->set_guard(&guard_);
    const JsonObject sizes{{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "6"}};
    for (const auto* name : {"n0", "n1", "n2"}) {
        write("admin", "POST", kNodes,
              JsonObject{{"metadata", JsonObject{{"name", name}}}, {"status", JsonObject{{"allocatable", sizes}}}});
        JsonArray cpus;
        for (int id = 0; id < 4; ++id) {
            cpus.push_back(JsonObject{{"id", id}, {"core", id / 2}, {"node", 0}, {"socket", 0}});
        }
        const JsonObject notes{{"node.koordinator.sh/cpu-topology", base::to_text(JsonObject{{"detail", cpus}})}};
        write("admin", "POST", kTopologies,
              JsonObject{{"metadata", JsonObject{{"name", name}, {"annotations", notes}}},
                         {"topologyPolicies", JsonArray{"None"}},
                         {"zones", JsonArray()}});
    }
}

Attacker::~Attacker() {
    front_.store->set_guard(nullptr);
}

std::string Attacker::some(const std::string& kind, const std::string& otherwise) {
    const auto records = front_.store->list({.kind = kind})->records;
    return records.empty() ? otherwise : records[random_.below(records.size())]->key.name;
}

Json Attacker::requests() {
    JsonObject out{{"cpu", cpu()}};
    if (random_.chance(1, 3)) out["memory"] = any({"1Gi", "2Gi", "4Gi"});
    return out;
}

Json Attacker::container() {
    JsonObject out{{"name", "c"}, {"image", "i"}, {"resources", JsonObject{{"requests", requests()}}}};
    if (random_.chance(1, 6)) {
        out["ports"] = JsonArray{JsonObject{{"containerPort", 80}, {"hostPort", 8000 + random_.below(2)}}};
    }
    return out;
}

void Attacker::add_beside(JsonObject& spec) {
    if (random_.chance(1, 8)) spec["overhead"] = JsonObject{{"cpu", "1"}};
    if (random_.chance(1, 4)) {
        JsonArray before;
        const auto add = [&](const char* name, bool stays) {
            JsonObject made{{"name", name}, {"image", "i"}, {"resources", JsonObject{{"requests", requests()}}}};
            if (stays) made["restartPolicy"] = "Always";
            before.push_back(std::move(made));
        };
        if (random_.chance(1, 2)) add("first", false);
        if (random_.chance(2, 3)) add("sidecar", true);
        if (random_.chance(1, 2)) add("last", false);
        if (!before.empty()) spec["initContainers"] = std::move(before);
    } else if (random_.chance(1, 6)) {
        spec["resources"] = JsonObject{{"requests", JsonObject{{"cpu", "4"}}}};
    }
}

void Attacker::add_cores(JsonObject& notes) {
    notes[kCoresKept] =
        base::to_text(JsonObject{{"cpuset", any({"0", "1", "2", "0-1", "1-2", "2-3", "0-3", "3-4", "x"})}});
}

Json Attacker::link_annotations() {
    const auto named = [&] {
        const auto name = some("scheduling.koordinator.sh/reservations", "none");
        const auto head = front_.store->head({"scheduling.koordinator.sh/reservations", "", name});
        return std::pair(name, head ? head->uid : "no-uid");
    };
    const auto [name, uid] = named();
    JsonObject out{
        {"scheduling.koordinator.sh/reservation-allocated", base::to_text(JsonObject{{"name", name}, {"uid", uid}})}};
    if (random_.chance(1, 4)) {
        const auto [other, other_uid] = named();
        out["berth.dev/reservation-draws"] = base::to_text(
            JsonArray{JsonObject{{"name", other}, {"uid", other_uid}, {"resources", JsonObject{{"cpu", cpu()}}}}});
    }
    return out;
}

Move Attacker::write(std::string who, std::string method, std::string path, const Json& body, std::string kind) {
    Move move{std::move(who), std::move(method), std::move(path), body.is_null() ? "" : base::to_text(body), {}, {}};
    front_.peer = identity(move.who);
    api::Pairs headers;
    if (!kind.empty()) headers.emplace_back("content-type", kind);
    const auto answer = front_.ask(move.method, move.path, move.body, headers);
    move.code = answer.code;
    if (move.code >= 300) move.message = answer.text({"message"});
    move.placed = answer.code < 300 && answer.text({"status", "phase"}) != "Failed";
    return move;
}

Move Attacker::patch(std::string who, std::string path, const Json& body) {
    const bool own = path.starts_with(kReservations);
    if (random_.chance(1, 3)) {
        JsonArray steps;
        as_steps(body, "", steps);
        return write(std::move(who), "PATCH", std::move(path), steps, "application/json-patch+json");
    }
    const bool merges = own || random_.chance(1, 2);
    return write(std::move(who), "PATCH", std::move(path), body,
                 merges ? "application/merge-patch+json" : "application/strategic-merge-patch+json");
}

Move Attacker::write_node() {
    const std::string name = node();
    const JsonObject sizes{
        {"cpu", any({"2", "4", "4", "6", "-1"})}, {"memory", any({"4Gi", "8Gi"})}, {"pods", any({"2", "3", "6"})}};
    Move move;
    switch (random_.below(4)) {
        case 0:
            move = write("admin", "DELETE", kNodes + "/" + name, nullptr);
            break;
        case 1:
            move = patch(any({"admin", "controller"}), kNodes + "/" + name + "/status",
                         JsonObject{{"status", JsonObject{{"allocatable", sizes}}}});
            break;
        case 2:
            move = write(
                "admin", "PATCH", kNodes + "/" + name,
                JsonObject{{"metadata",
                            JsonObject{{"annotations", JsonObject{{"node.koordinator.sh/reservation",
                                                                   any({R"({"resources":{"cpu":"1"}})",
                                                                        R"({"resources":{"cpu":"-1"}})", "{"})}}}}}},
                "application/merge-patch+json");
            break;
        default:
            move = write(
                "admin", "POST", kNodes,
                JsonObject{{"metadata", JsonObject{{"name", name}}}, {"status", JsonObject{{"allocatable", sizes}}}});
    }
    move.node_written = name;
    return move;
}

Move Attacker::create_pod(const Picture& now) {
    JsonObject spec{{"containers", JsonArray{container()}}};
    add_beside(spec);
    const bool on_node = random_.chance(1, 3);
    const std::string where = random_.chance(1, 10) ? "nowhere" : node();
    if (on_node) spec["nodeName"] = where;
    const std::string who = random_.chance(1, 6) ? "importer" : any({"admin", "controller"});
    JsonObject labels{{"app", app()}};
    if (random_.chance(1, 3)) labels["koordinator.sh/qosClass"] = "LSR";
    JsonObject meta{{"name", fmt::format("p{}", ++made_)}, {"labels", labels}};
    const bool linked = who == "importer" && random_.chance(1, 2);
    if (linked) {
        Json notes = link_annotations();
        if (random_.chance(1, 3)) add_cores(notes.as_object());
        meta["annotations"] = notes;
    }
    JsonObject pod{{"metadata", meta}, {"spec", spec}};
    if (who == "importer") pod["status"] = JsonObject{{"phase", any({"Running", "Pending", "Succeeded"})}};
    const bool has_port = spec["containers"].as_array()[0].as_object().contains("ports");
    const bool ends = who == "importer" && base::find_string(pod, {"status", "phase"}) == "Succeeded";
    std::optional<bool> fits;
    if (on_node && !linked && !has_port && !ends) fits = has_room(now, where, pod);
    Move move = write(who, "POST", kPods, pod);
    move.fits = fits;
    return move;
}

// A scheduler that does its work: an owner into a reservation that is there for it.
std::optional<Move> Attacker::bind_owner() {
    const auto pods = front_.store->list({.kind = "pods"})->records;
    const auto reservations = front_.store->list({.kind = "scheduling.koordinator.sh/reservations"})->records;
    for (const auto& held : reservations) {
        const auto reservation = base::parse_json(*held->bytes).value();
        if (base::find_string(reservation, {"status", "phase"}) != "Available" || random_.chance(1, 3)) continue;
        const std::string node_name(base::find_string(reservation, {"status", "nodeName"}));
        for (const auto& record : pods) {
            const auto pod = base::parse_json(*record->bytes).value();
            if (!base::find_string(pod, {"spec", "nodeName"}).empty()) continue;
            const auto label = base::find_string(pod, {"metadata", "labels", "app"});
            if (base::to_text(reservation.at("spec").at("owners")).find(fmt::format("\"{}\"", label)) ==
                std::string::npos)
                continue;
            const std::string link = base::to_text(JsonObject{{"name", held->key.name}, {"uid", held->uid}});
            JsonObject notes{{"scheduling.koordinator.sh/reservation-allocated", link}};
            const auto cores = base::find_string(reservation, {"status", "resourceStatus", "cpuset"});
            if (!cores.empty()) notes[kCoresKept] = base::to_text(JsonObject{{"cpuset", cores}});
            return write("scheduler", "POST", kPods + "/" + record->key.name + "/binding",
                         JsonObject{{"metadata", JsonObject{{"name", record->key.name}, {"annotations", notes}}},
                                    {"target", JsonObject{{"kind", "Node"}, {"name", node_name}}}});
        }
    }
    return std::nullopt;
}

Move Attacker::bind_pod(const Picture& now) {
    if (random_.chance(1, 2)) {
        if (auto move = bind_owner()) return *move;
    }
    const std::string name = some("pods", "p");
    const std::string where = node();
    JsonObject meta{{"name", name}};
    const bool linked = random_.chance(1, 2);
    if (linked) {
        Json notes = random_.chance(1, 2) ? link_annotations() : JsonObject();
        if (notes.as_object().empty() || random_.chance(1, 2)) add_cores(notes.as_object());
        meta["annotations"] = notes;
    }
    const auto head = front_.store->head({"pods", "default", name});
    const auto pod = head ? base::parse_json(*head->bytes) : base::parse_json("{}");
    // One that cannot be read, that is linked already or wants a port is not so plain.
    const auto mentions = [&](std::string_view what) { return head->bytes->find(what) != std::string::npos; };
    const bool free = head && base::find_string(*pod, {"spec", "nodeName"}).empty() &&
                      base::find_string(*pod, {"status", "phase"}) == "Pending" && !mentions("\"-1\"") &&
                      !mentions("reservation-allocated") && !mentions("hostPort");
    std::optional<bool> fits;
    if (free && !linked) fits = has_room(now, where, *pod);
    Move move = write(linked ? "scheduler" : any({"admin", "scheduler"}), "POST", kPods + "/" + name + "/binding",
                      JsonObject{{"metadata", meta}, {"target", JsonObject{{"kind", "Node"}, {"name", where}}}});
    move.fits = fits;
    return move;
}

Move Attacker::change_pod() {
    const std::string path = kPods + "/" + some("pods", "p");
    switch (random_.below(9)) {
        case 6: {
            const JsonObject sidecar{{"name", "sidecar"}, {"resources", JsonObject{{"requests", requests()}}}};
            return patch(any({"admin", "controller"}), path + "/resize",
                         JsonObject{{"spec", JsonObject{{"initContainers", JsonArray{sidecar}}}}});
        }
        case 7:
            return patch(any({"admin", "controller"}), path + any({"/resize", ""}),
                         JsonObject{{"spec", JsonObject{{"resources", JsonObject{{"requests", requests()}}}}}});
        case 8: {
            JsonObject made{{"name", "debug"}, {"image", "i"}};
            if (random_.chance(1, 2)) made["resources"] = JsonObject{{"requests", requests()}};
            return patch(any({"admin", "controller"}), path + "/ephemeralcontainers",
                         JsonObject{{"spec", JsonObject{{"ephemeralContainers", JsonArray{made}}}}});
        }
        case 0:
            return patch(any({"admin", "controller"}), path + "/resize",
                         JsonObject{{"spec", JsonObject{{"containers", JsonArray{container()}}}}});
        case 1:
            return patch(
                any({"admin", "controller"}), path + "/ephemeralcontainers",
                JsonObject{{"spec", random_.chance(1, 2) ? JsonObject{{"nodeName", node()}}
                                                         : JsonObject{{"containers", JsonArray{container()}}}}});
        case 2:
            return patch(any({"admin", "controller"}), path, JsonObject{{"spec", JsonObject{{"nodeName", node()}}}});
        case 3:
            return patch(any({"admin", "controller"}), path,
                         JsonObject{{"spec", JsonObject{{"containers", JsonArray{container()}},
                                                        {"overhead", JsonObject{{"cpu", "2"}}}}}});
        case 4:
            return patch("importer", path, JsonObject{{"metadata", JsonObject{{"annotations", link_annotations()}}}});
        default:
            return patch(any({"admin", "controller"}), path,
                         JsonObject{{"metadata", JsonObject{{"labels", JsonObject{{"app", app()}}}}}});
    }
}

Move Attacker::change_pod_status() {
    JsonObject status;
    if (random_.chance(1, 2)) status["phase"] = any({"Pending", "Running", "Succeeded", "Failed", "Odd"});
    if (random_.chance(1, 3)) {
        JsonObject state{{"name", "c"}, {"image", "i"}, {"imageID", ""}, {"ready", true}, {"restartCount", 0}};
        if (random_.chance(1, 2)) state["allocatedResources"] = JsonObject{{"cpu", any({"1", "2", "4", "-1"})}};
        if (random_.chance(1, 3)) state["resources"] = JsonObject{{"requests", requests()}};
        if (random_.chance(1, 4)) {
            state["name"] = "sidecar";
            status["initContainerStatuses"] = JsonArray{state};
        } else {
            status["containerStatuses"] = JsonArray{state};
        }
    }
    if (random_.chance(1, 4)) {
        status["conditions"] = JsonArray{
            JsonObject{{"type", "PodResizePending"}, {"status", "True"}, {"reason", any({"Infeasible", "Deferred"})}}};
    }
    JsonObject body{{"status", status}};
    if (random_.chance(1, 6)) body["metadata"] = JsonObject{{"labels", JsonObject{{"app", app()}}}};
    return patch(writer(), kPods + "/" + some("pods", "p") + "/status", body);
}

Move Attacker::write_reservation() {
    JsonObject spec{
        {"owners", JsonArray{JsonObject{{"labelSelector", JsonObject{{"matchLabels", JsonObject{{"app", app()}}}}}}}},
        {"allocateOnce", random_.chance(1, 2)},
        {"allocatePolicy", any({"", "", "Aligned", "Restricted"})},
        {"preAllocation", random_.chance(1, 4)},
        {"template",
         JsonObject{{"spec", JsonObject{{"containers",
                                         JsonArray{JsonObject{
                                             {"name", "c"}, {"resources", JsonObject{{"requests", requests()}}}}}}}}}}};
    JsonObject body{{"metadata", JsonObject{{"name", fmt::format("r{}", ++made_)}}}, {"spec", spec}};
    const std::string who = random_.chance(1, 5) ? "importer" : writer();
    if (who == "importer") body["status"] = JsonObject{{"phase", "Available"}, {"nodeName", node()}};
    return write(who, "POST", kReservations, body);
}

Json Attacker::reservation_status() {
    JsonObject status{
        {"phase", any({"Available", "Available", "Available", "Waiting", "Pending", "Succeeded", "Failed"})}};
    if (random_.chance(3, 4)) status["nodeName"] = random_.chance(1, 10) ? "nowhere" : node();
    if (random_.chance(1, 3)) status["allocatable"] = JsonObject{{"cpu", any({"1", "2", "4", "-4"})}};
    if (random_.chance(1, 6)) {
        status["currentOwners"] = JsonArray{JsonObject{{"namespace", "default"}, {"name", "x"}, {"uid", "forged"}}};
    }
    if (random_.chance(1, 4)) {
        status["resourceStatus"] = JsonObject{{"cpuset", any({"0", "1", "0-1", "1-2", "2-3", "0-3", "3-4"})}};
    }
    return status;
}

Move Attacker::place_reservation() {
    const Json status = reservation_status();
    return patch(writer(), kReservations + "/" + some("scheduling.koordinator.sh/reservations", "r") + "/status",
                 JsonObject{{"status", status}});
}

Move Attacker::change_reservation() {
    const std::string path = kReservations + "/" + some("scheduling.koordinator.sh/reservations", "r");
    switch (random_.below(6)) {
        case 0:
            return write(any({"admin", "controller"}), "DELETE", path, nullptr);
        case 1:
            return patch("admin", path, JsonObject{{"spec", JsonObject{{"allocateOnce", random_.chance(1, 2)}}}});
        case 2:
            return patch("admin", path, JsonObject{{"spec", JsonObject{{"allocatePolicy", any({"", "Restricted"})}}}});
        case 3:
            return patch(
                "admin", path,
                JsonObject{
                    {"spec", JsonObject{{"template",
                                         JsonObject{{"spec", JsonObject{{"containers", JsonArray{container()}}}}}}}}});
        default:
            return patch(
                "admin", path,
                JsonObject{
                    {"spec", JsonObject{{"owners", JsonArray{JsonObject{
                                                       {"labelSelector",
                                                        JsonObject{{"matchLabels", JsonObject{{"app", app()}}}}}}}}}}});
    }
}

Move Attacker::step(const Picture& now) {
    const auto dice = random_.below(22);
    if (dice < 2) return write_node();
    if (dice < 6) return create_pod(now);
    if (dice < 10) return bind_pod(now);
    if (dice < 12) return change_pod();
    if (dice < 14) return change_pod_status();
    if (dice < 16) return write_reservation();
    if (dice < 19) return place_reservation();
    if (dice < 20) return change_reservation();
    return write("admin", "DELETE", kPods + "/" + some("pods", "p") + "?gracePeriodSeconds=0", nullptr);
}

}  // namespace berth::attack
