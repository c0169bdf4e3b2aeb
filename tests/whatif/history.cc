#include "history.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/clock.h"
#include "control/simulated.h"
#include "live.h"

namespace berth::whatif {
namespace {

Json containers(const std::string& cpu, std::optional<int> port) {
    JsonObject container{{"name", "c"},
                         {"image", "i"},
                         {"resources", JsonObject{{"requests", JsonObject{{"cpu", cpu}, {"memory", "1Gi"}}}}}};
    if (port) container["ports"] = JsonArray{JsonObject{{"containerPort", *port}, {"hostPort", *port}}};
    return JsonArray{container};
}

Deed creation(const char* collection, const Json& document, const std::string& what) {
    return {what, {"POST", collection, base::to_text(document)}};
}

Deed patch(const char* collection, const std::string& name, const Json& body, const std::string& what) {
    return {what,
            {"PATCH", fmt::format("{}/{}", collection, name), base::to_text(body), "application/merge-patch+json"}};
}

std::string name_of(const Json& document) {
    return std::string(base::find_string(document, {"metadata", "name"}));
}

}  // namespace

Deed History::next(const std::vector<Json>& now) {
    std::map<std::string, std::vector<const Json*>> by_kind;
    for (const auto& document : now) {
        const bool ours = base::find_string(document, {"metadata", "labels", "berth.dev/made-for"}).empty();
        if (ours) by_kind[std::string(base::find_string(document, {"kind"}))].push_back(&document);
    }
    const auto any = [&](const char* kind) -> const Json* {
        const auto& all = by_kind[kind];
        return all.empty() ? nullptr : all[random_.below(all.size())];
    };
    const uint64_t which = random_.below(20);
    if (which < 8) return make_pod();
    if (which < 12) return make_reservation();
    if (const Json* pod = any("Pod"); pod && which < 15) return delete_one("Pod", name_of(*pod));
    if (const Json* held = any("Reservation"); held && which < 17) {
        return random_.chance(1, 2) ? close(*held) : delete_one("Reservation", name_of(*held));
    }
    const Json* node = any("Node");
    if (which < 18 && nodes_ < 5) {
        return make_node(fmt::format("n{}", ++nodes_), static_cast<int>(random_.between(4, 8)));
    }
    if (node == nullptr) return make_pod();
    return random_.chance(1, 3) ? cordon(*node) : annotate_node(name_of(*node));
}

size_t History::age_of(const std::string& name) const {
    const auto found = ages_.find(name);
    return found == ages_.end() ? 0 : found->second;
}

// Not in the order in which they are made.
std::string History::new_name(const char* kind) {
    const std::string name = fmt::format("{}-{:04x}", kind, random_.below(65536));
    return ages_.emplace(name, ages_.size() + 1).second ? name : new_name(kind);
}

Deed History::make_node(const std::string& name, int cpu) {
    control::SimulatedNode node;
    node.name = name;
    node.cpu = std::to_string(cpu);
    return creation(kNodes, control::simulated_node(node, base::system_clock().wall()),
                    fmt::format("node {} of {} cpu", name, cpu));
}

Deed History::make_pod() {
    const std::string name = new_name("p");
    const std::string label = app();
    const std::string amount = cpu(4);
    const bool high = random_.chance(1, 5);
    const bool anti = random_.chance(1, 6);
    const bool must_draw = random_.chance(1, 8);
    const std::optional<int> port = random_.chance(1, 6) ? std::optional(8080) : std::nullopt;
    JsonObject meta{{"name", name}, {"namespace", "default"}, {"labels", JsonObject{{"app", label}}}};
    if (must_draw) {
        meta["annotations"] = JsonObject{{"scheduling.koordinator.sh/reservation-affinity", "{}"}};
    }
    JsonObject spec{{"schedulerName", "berth"}, {"containers", containers(amount, port)}};
    if (high) spec["priorityClassName"] = "high";
    if (anti) {
        const JsonObject term{{"topologyKey", "kubernetes.io/hostname"},
                              {"labelSelector", JsonObject{{"matchLabels", JsonObject{{"app", label}}}}}};
        spec["affinity"] = JsonObject{
            {"podAntiAffinity", JsonObject{{"requiredDuringSchedulingIgnoredDuringExecution", JsonArray{term}}}}};
    }
    return creation(kPods, JsonObject{{"metadata", meta}, {"spec", spec}},
                    fmt::format("pod {} of {} cpu for {}{}{}{}{}", name, amount, label, high ? ", high" : "",
                                anti ? ", apart" : "", must_draw ? ", must draw" : "", port ? ", port" : ""));
}

Deed History::make_reservation() {
    const std::string name = new_name("r");
    const std::string owner = app();
    const std::string amount = cpu(5);
    const bool once = random_.chance(1, 2);
    const bool ahead = random_.chance(1, 4);
    const char* policy = std::array{"", "Aligned", "Restricted"}[random_.below(3)];
    const JsonObject labels{{"matchLabels", JsonObject{{"app", owner}}}};
    const std::optional<int> port = random_.chance(1, 8) ? std::optional(8080) : std::nullopt;
    JsonObject spec{{"ttl", "0"},
                    {"owners", JsonArray{JsonObject{{"labelSelector", labels}}}},
                    {"allocateOnce", once},
                    {"preAllocation", ahead},
                    {"template", JsonObject{{"spec", JsonObject{{"containers", containers(amount, port)}}}}}};
    if (*policy != '\0') spec["allocatePolicy"] = policy;
    return creation(kReservations,
                    JsonObject{{"apiVersion", "scheduling.koordinator.sh/v1alpha1"},
                               {"kind", "Reservation"},
                               {"metadata", JsonObject{{"name", name}}},
                               {"spec", spec}},
                    fmt::format("reservation {} of {} cpu for {}{}{}{} {}", name, amount, owner, once ? ", once" : "",
                                ahead ? ", pre-allocates" : "", port ? ", port" : "", policy));
}

Deed History::annotate_node(const std::string& name) {
    const Json value = std::array{Json(R"({"resources":{"cpu":"1"}})"), Json(R"({"resources":{"cpu":"3"}})"),
                                  Json(R"({"resources":{"cpu":"2"}})"), Json(nullptr)}[random_.below(4)];
    return patch(
        kNodes, name,
        JsonObject{{"metadata", JsonObject{{"annotations", JsonObject{{"node.koordinator.sh/reservation", value}}}}}},
        fmt::format("{} keeps {}", name, base::to_text(value)));
}

Deed History::cordon(const Json& node) {
    const Json* before = base::find(node, {"spec", "unschedulable"});
    const bool was = before && before->is_bool() && before->as_bool();
    return patch(kNodes, name_of(node), JsonObject{{"spec", JsonObject{{"unschedulable", !was}}}},
                 fmt::format("{} is {}", name_of(node), was ? "open" : "cordoned"));
}

Deed History::close(const Json& reservation) {
    const Json* before = base::find(reservation, {"spec", "unschedulable"});
    const bool was = before && before->is_bool() && before->as_bool();
    return patch(kReservations, name_of(reservation), JsonObject{{"spec", JsonObject{{"unschedulable", !was}}}},
                 fmt::format("{} is {}", name_of(reservation), was ? "open" : "closed"));
}

Deed History::delete_one(const std::string& kind, const std::string& name) {
    const Json at_once(JsonObject{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"gracePeriodSeconds", 0}});
    const char* collection = kind == "Pod" ? kPods : kReservations;
    return {fmt::format("delete {}", name), {"DELETE", fmt::format("{}/{}", collection, name), base::to_text(at_once)}};
}

}  // namespace berth::whatif
