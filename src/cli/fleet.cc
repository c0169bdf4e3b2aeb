#include "cli/fleet.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/live.h"
#include "fleet/objects.h"
#include "link/connect.h"

namespace berth::cli {
namespace {

using base::find_string;

constexpr const char* kCompute = "/apis/compute.ironcore.dev/v1alpha1";
constexpr const char* kCore = "/apis/core.ironcore.dev/v1alpha1";

Result<std::vector<Json>> all_of(link::ApiClient& server, const std::string& path, std::string_view kind) {
    std::vector<Json> out;
    TRY(list_all(server, path, kind, [&](const Json& object) -> Status {
        out.push_back(object);
        return {};
    }));
    return out;
}

std::string in(const std::string& ns, const char* plural) {
    return ns.empty() ? fmt::format("/{}", plural) : fmt::format("/namespaces/{}/{}", ns, plural);
}

std::string named(const Json& object) {
    const auto meta = fleet::meta_of(object);
    return meta.full_name();
}

// The kubeconfig of the layer below a pool; "" where a provider is, or nobody has said yet.
std::string layer_below(const Json& pool) {
    return std::string(fleet::meta_of(pool).annotations.get(fleet::kLayer));
}

// What a layer holds, each with its place in the layer.
struct Layer {
    std::vector<Json> pools;
    std::vector<fleet::Reservation> reservations;
    std::vector<fleet::Machine> machines;
};

Result<Layer> read_layer(link::ApiClient& server, const std::string& ns) {
    Layer out;
    out.pools = TRY(all_of(server, std::string(kCompute) + "/machinepools", "MachinePool"));
    for (const auto* group : {kCore, kCompute}) {
        for (const auto& object : TRY(all_of(server, group + in(ns, "reservations"), "Reservation")))
            out.reservations.push_back(TRY(fleet::read_reservation(object)));
    }
    for (const auto& object : TRY(all_of(server, kCompute + in(ns, "machines"), "Machine")))
        out.machines.push_back(TRY(fleet::read_machine(object)));
    return out;
}

Json reservation_entry(const fleet::Reservation& reservation, const model::HoldAnswer& answer) {
    return JsonObject{{"name", reservation.meta.full_name()},
                      {"state", model::name_of(answer.state)},
                      {"reason", model::name_of(answer.reason)}};
}

Json node(const std::string& name, const char* kind, bool ready) {
    return JsonObject{{"name", name},
                      {"kind", kind},
                      {"ready", ready},
                      {"free", Json()},
                      {"reservations", JsonArray()},
                      {"machines", JsonArray()},
                      {"children", JsonArray()}};
}

JsonArray& list(Json& object, std::string_view name) {
    return object.get_object()[name].get_array();
}

Json pool_node(const Json& object, const Layer& layer) {
    const auto pool = *fleet::read_pool(object);
    Json out = node(pool.name, layer_below(object).empty() ? "provider" : "pool", pool.ready);
    Json& free = out.get_object()["free"];
    for (const auto& reservation : layer.reservations) {
        for (const auto& entry : reservation.asked.entries) {
            const bool now = fleet::state_at(reservation, entry) != model::HoldState::Released;
            if (entry.name != pool.name || !now) continue;
            list(out, "reservations").push_back(reservation_entry(reservation, entry.answer));
            // Amounts are its own; that it has room, or has none, it says in each answer.
            if (entry.answer.state == model::HoldState::Accepted) free = true;
            if (entry.answer.state == model::HoldState::Rejected && free.is_null()) free = false;
        }
    }
    for (const auto& machine : layer.machines) {
        if (machine.pool == pool.name)
            list(out, "machines").push_back(JsonObject{{"name", machine.meta.full_name()}, {"state", machine.state}});
    }
    if (const Json* amounts = base::find(object, {"status", "allocatable"})) free = *amounts;
    return out;
}

std::string free_words(const Json& free) {
    if (free.is_bool()) return free.get_bool() ? ", has room" : ", has no room";
    if (!free.is_object()) return "";
    std::string out = ", free:";
    for (const auto& entry : free.get_object())
        out += fmt::format(" {}={}", std::string_view(entry.key()), std::string_view(entry.value().get_string()));
    return out;
}

void add_lines(const Json& at, const std::string& indent, std::string& out) {
    const auto& object = at.get_object();
    std::string words;
    for (const auto& each : object.at("reservations").get_array()) {
        const auto reason = find_string(each, {"reason"});
        words += fmt::format("  reservation {} {}{}", find_string(each, {"name"}), find_string(each, {"state"}),
                             reason.empty() ? "" : fmt::format(" ({})", reason));
    }
    for (const auto& each : object.at("machines").get_array())
        words += fmt::format("  machine {} {}", find_string(each, {"name"}), find_string(each, {"state"}));
    out += fmt::format("{}{} ({}{}{}){}\n", indent, find_string(at, {"name"}), find_string(at, {"kind"}),
                       object.at("ready").get_bool() ? "" : ", not ready", free_words(object.at("free")), words);
    for (const auto& child : object.at("children").get_array()) add_lines(child, indent + "  ", out);
}

}  // namespace

Result<Json> fleet_tree(link::ApiClient& server, const std::string& name, const std::string& ns) {
    const Layer layer = TRY(read_layer(server, ns));
    Json out = node(name, "layer", true);
    for (const auto& reservation : layer.reservations)
        list(out, "reservations").push_back(reservation_entry(reservation, reservation.asked.told));
    for (const auto& machine : layer.machines) {
        if (machine.pool.empty())
            list(out, "machines").push_back(JsonObject{{"name", machine.meta.full_name()}, {"state", machine.state}});
    }
    std::vector<Json> pools = layer.pools;
    std::sort(pools.begin(), pools.end(), [](const Json& a, const Json& b) { return named(a) < named(b); });
    for (const auto& pool : pools) {
        Json entry = pool_node(pool, layer);
        if (const std::string file = layer_below(pool); !file.empty()) {
            const auto below = link::connect({.kubeconfig = file});
            auto tree = below ? fleet_tree(**below, named(pool), "") : Result<Json>(below.error());
            if (tree) list(entry, "children") = tree->get_object().at("children").get_array();
            // Of the layer itself only what has no pool yet is not told by its pools.
            if (tree) {
                for (auto& machine : list(*tree, "machines")) list(entry, "machines").push_back(machine);
            }
        }
        list(out, "children").push_back(std::move(entry));
    }
    return out;
}

std::string fleet_tree_text(const Json& tree) {
    std::string out;
    add_lines(tree, "", out);
    return out;
}

Result<Json> machine_explanation(link::ApiClient& server, const std::string& ns, const std::string& name) {
    const auto object =
        TRY(ask_object(server, {"GET", fmt::format("{}/namespaces/{}/machines/{}", kCompute, ns, name)}));
    const auto machine = TRY(fleet::read_machine(object));
    const Layer layer = TRY(read_layer(server, ns));
    JsonArray asked;
    std::string state = "none";
    std::string reason;
    for (const auto& reservation : layer.reservations) {
        if (reservation.ask.lineage != machine.lineage) continue;
        state = model::name_of(reservation.asked.told.state);
        reason = model::name_of(reservation.asked.told.reason);
        for (const auto& entry : reservation.asked.entries) {
            asked.push_back(JsonObject{{"pool", entry.name},
                                       {"state", model::name_of(fleet::state_at(reservation, entry))},
                                       {"reason", model::name_of(entry.answer.reason)},
                                       {"score", entry.answer.score}});
        }
        for (const auto& pool : reservation.asked.pools) {
            const bool known = std::any_of(asked.begin(), asked.end(),
                                           [&](const Json& each) { return find_string(each, {"pool"}) == pool; });
            if (!known) asked.push_back(JsonObject{{"pool", pool}, {"state", "Pending"}, {"reason", ""}, {"score", 0}});
        }
    }
    const auto needed =
        ask_object(server, {"GET", fmt::format("{}/machineclasses/{}", kCompute, machine.machine_class)});
    const bool classless = !needed && needed.error().reason == Reason::NotFound;
    if (!machine.trouble.empty()) reason = machine.trouble;
    if (classless) reason = fmt::format("there is no MachineClass \"{}\"", machine.machine_class);
    JsonArray apart;
    for (const auto& pool : layer.pools) {
        const auto read = *fleet::read_pool(pool);
        fleet::Asked question;
        question.selector = machine.selector;
        question.tolerations = machine.tolerations;
        const std::string why = fleet::why_not(question, read);
        if (!why.empty()) apart.push_back(JsonObject{{"pool", read.name}, {"why", why}});
    }
    JsonArray events;
    for (const auto& event : TRY(all_of(server, fmt::format("/api/v1/namespaces/{}/events", ns), "Event"))) {
        if (find_string(event, {"involvedObject", "uid"}) != machine.meta.uid) continue;
        events.push_back(
            JsonObject{{"reason", find_string(event, {"reason"})}, {"message", find_string(event, {"message"})}});
    }
    return Json(JsonObject{{"machine", machine.meta.full_name()},
                           {"events", std::move(events)},
                           {"pool", machine.pool.empty() ? Json() : Json(machine.pool)},
                           {"state", machine.state},
                           {"attempt", static_cast<int64_t>(machine.attempt)},
                           {"reservation", state},
                           {"reason", reason},
                           {"asked", std::move(asked)},
                           {"notAsked", std::move(apart)}});
}

std::string machine_text(const Json& explanation) {
    const auto& object = explanation.get_object();
    const auto pool = find_string(explanation, {"pool"});
    std::string out = fmt::format("Machine {} {}", find_string(explanation, {"machine"}),
                                  pool.empty() ? "has no pool yet." : fmt::format("goes to pool {}.", pool));
    const auto state = find_string(explanation, {"state"});
    out += fmt::format(" State {}, attempt {}.\n", state.empty() ? "-" : state, object.at("attempt").get_int64());
    if (const auto why = find_string(explanation, {"reason"}); !why.empty()) out += fmt::format("  {}\n", why);
    for (const auto& each : object.at("asked").get_array()) {
        const auto reason = find_string(each, {"reason"});
        out += fmt::format("  {}: {}{}\n", find_string(each, {"pool"}), find_string(each, {"state"}),
                           reason.empty() ? "" : fmt::format(", {}", reason));
    }
    for (const auto& each : object.at("notAsked").get_array())
        out += fmt::format("  {}: not asked, {}\n", find_string(each, {"pool"}), find_string(each, {"why"}));
    for (const auto& each : object.at("events").get_array())
        out += fmt::format("  {}: {}\n", find_string(each, {"reason"}), find_string(each, {"message"}));
    return out;
}

}  // namespace berth::cli
