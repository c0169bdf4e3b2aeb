#include "cli/shares_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json_view.h"
#include "model/node_reservation.h"
#include "model/reservation_rules.h"
#include "model/times.h"

namespace berth::cli {
namespace {

constexpr std::chrono::seconds kLostAfter{60};  // a node that is not ready counts so long
constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";

template <auto Read>
auto read_with(const Json& object) -> decltype(Read(std::declval<JsonView>())) {
    base::JsonParser parser;
    const std::string text = base::to_text(object);
    return Read(TRY(parser.parse(text)));
}

// What containers may use at most, by the rule that adds up their requests.
model::Resources limits_of(Json pod) {
    model::Resources out;
    Json* spec = base::find(pod, {"spec"});
    if (spec == nullptr || !spec->is_object()) return out;
    const auto take_limits = [](Json& owner) {
        Json* resources = owner.is_object() ? base::find(owner, {"resources"}) : nullptr;
        if (resources == nullptr || !resources->is_object()) return;
        const Json* limits = base::find(*resources, {"limits"});
        const Json copy = limits != nullptr ? *limits : Json(JsonObject{});
        resources->as_object()["requests"] = copy;
    };
    for (const auto* list : {"containers", "initContainers"}) {
        Json* containers = base::find(*spec, {list});
        if (containers == nullptr || !containers->is_array()) continue;
        for (auto& container : containers->as_array()) take_limits(container);
    }
    take_limits(*spec);
    const auto read = read_with<model::read_pod>(pod);
    if (!read) return out;
    for (const auto* name : {"cpu", "memory", "ephemeral-storage"}) {
        const auto id = *model::intern_resource(name);
        if (read->spec->requests.has(id))
            out.set(*model::intern_resource(fmt::format("limits.{}", name)), read->spec->requests.get(id));
    }
    return out;
}

bool is_lost(const Json& node, base::Time now) {
    const Json* conditions = base::find(node, {"status", "conditions"});
    if (conditions == nullptr || !conditions->is_array()) return false;
    for (const auto& condition : conditions->as_array()) {
        if (base::find_string(condition, {"type"}) != "Ready") continue;
        if (base::find_string(condition, {"status"}) == "True") return false;
        const auto since = model::parse_time(base::find_string(condition, {"lastTransitionTime"}));
        return !since || now - *since >= kLostAfter;
    }
    return false;
}

int64_t number_in(std::string_view text) {
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// The namespace of all owners of a reservation; "": there may be several.
std::string namespace_of(const model::Reservation& reservation) {
    std::string ns;
    for (const auto& owner : reservation.owners) {
        const std::string& named =
            owner.object ? owner.object->ns : (owner.controller ? owner.controller->ns : std::string());
        if (named.empty() || (!ns.empty() && ns != named)) return {};
        ns = named;
    }
    return ns;
}

// minAvailable or maxUnavailable: a number, or a percentage that is rounded up.
int64_t count_in(const Json& spec, std::string_view field, int64_t of, int64_t otherwise) {
    const Json* value = base::find(spec, {field});
    if (value == nullptr) return otherwise;
    if (value->is_int64()) return value->as_int64();
    if (!value->is_string()) return otherwise;
    const std::string_view text(value->as_string());
    const int64_t number = number_in(text);
    return text.ends_with('%') ? (number * of + 99) / 100 : number;
}

}  // namespace

// It harms nobody else.
bool SharesScene::ignored(const Error& error) {
    warnings_.push_back(error.message + "; it is ignored");
    return true;
}

std::vector<std::string> SharesScene::warnings() const {
    std::vector<std::string> all = world_.warnings();
    all.insert(all.end(), warnings_.begin(), warnings_.end());
    return all;
}

Result<bool> SharesScene::put(const Json& object) {
    const std::string_view kind = base::find_string(object, {"kind"});
    const std::string_view version = base::find_string(object, {"apiVersion"});
    const std::string_view group = version.substr(0, version.find('/') == version.npos ? 0 : version.find('/'));
    if (kind == "Consumer" && (version.empty() || group == model::kSharesGroup)) {
        auto read = read_with<model::read_consumer>(object);
        if (read && read->meta.name.empty()) read = base::bad_request("Consumer: metadata.name is missing");
        if (!read) return ignored(read.error());
        model::Consumer& consumer = *read;
        std::erase_if(consumers_, [&](const auto& other) { return other.meta.name == consumer.meta.name; });
        consumers_.push_back(std::move(consumer));
        return true;
    }
    if (kind == "ResourceQuota" && group.empty()) {
        auto quota = read_with<model::read_resource_quota>(object);
        if (!quota) return ignored(quota.error());
        quotas_.push_back(std::move(*quota));
        return true;
    }
    if (kind == "Allocation" && group == model::kSharesGroup) return true;  // computed anew
    const std::string name(base::find_string(object, {"metadata", "name"}));
    std::string ns(base::find_string(object, {"metadata", "namespace"}));
    if (ns.empty()) ns = "default";
    if (kind == "Namespace") namespaces_.insert(name);
    if (kind == "Node" && is_lost(object, now_)) lost_.insert(name);
    if (kind == "PodDisruptionBudget") {
        const Json* spec = base::find(object, {"spec"});
        budgets_[ns + "/" + name] = {spec != nullptr ? *spec : Json(JsonObject{}),
                                     base::find(object, {"status", "disruptionsAllowed"}) != nullptr};
    }
    if (kind == "Pod") {
        if (!base::find_string(object, {"metadata", "creationTimestamp"}).empty()) dated_.insert(ns + "/" + name);
        limits_[ns + "/" + name] = limits_of(object);
        arrivals_.emplace(ns + "/" + name, arrivals_.size());
    }
    const bool known = TRY(world_.put(object));
    if (kind != "Pod" && kind != "Reservation") return known;
    const bool reservation = kind == "Reservation";
    const std::string fault = world_.fault_of(reservation, reservation ? "" : ns, name);
    if (!fault.empty()) warnings_.push_back(fault + "; it is not counted");
    return known;
}

bool SharesScene::names_limits() const {
    bool any = false;
    const auto look = [&](model::ResourceId id, int64_t) { any = any || model::is_limit(model::resource_name(id)); };
    for (const auto& consumer : consumers_) {
        for (const auto* amounts :
             {&consumer.hard.amounts, &consumer.hard.percents, &consumer.reserved.amounts, &consumer.reserved.percents,
              &consumer.request, &consumer.lending_limit, &consumer.borrowing_limit})
            amounts->for_each(look);
    }
    return any;
}

share::Scene SharesScene::take(bool limits) {
    world_.cluster().prepare();
    share::Scene scene;
    add_nodes(scene);
    add_budgets(scene);
    add_pods(scene, limits || names_limits());
    add_holds(scene);
    add_claims(scene);
    scene.namespaces.assign(namespaces_.begin(), namespaces_.end());
    scene.consumers = consumers_;
    scene.quotas = quotas_;
    return scene;
}

void SharesScene::add_nodes(share::Scene& scene) {
    const auto& ledger = world_.ledger();
    std::map<std::string, ledger::Row> rows;
    for (ledger::Row row = 0; row < ledger.rows(); ++row) {
        if (ledger.alive(row)) rows.emplace(ledger.name(row), row);
    }
    for (const auto& [name, row] : rows) {
        const model::Node& node = ledger.node(row);
        index_[name] = static_cast<uint32_t>(scene.nodes.size());
        scene.nodes.push_back({name, model::view_of(node).allocatable, node.unschedulable, lost_.contains(name)});
    }
}

share::ScenePod SharesScene::scene_pod(const model::Pod& pod, bool limits) const {
    share::ScenePod out;
    out.ns = pod.meta.ns;
    out.name = pod.meta.name;
    out.uid = pod.meta.uid;
    out.size = pod.spec->requests;
    out.size.erase(model::kPods);
    const std::string key = pod.meta.full_name();
    if (const auto found = limits_.find(key); limits && found != limits_.end()) out.size.add(found->second);
    out.placed = !pod.node.empty();
    if (const auto found = index_.find(pod.node); found != index_.end()) out.node = found->second;
    out.started = pod.started.has_value() || pod.phase == model::PodPhase::Running;
    out.terminating = pod.meta.deleted.has_value();
    out.gated =
        std::any_of(pod.gates.begin(), pod.gates.end(), [](const auto& gate) { return gate != model::kShareGate; });
    const auto* owner = pod.meta.controller();
    out.kept = (owner != nullptr && (owner->kind == "DaemonSet" || owner->kind == "Node")) ||
               pod.meta.annotations.find(kMirror) != nullptr || pod.priority_class.starts_with("system-");
    if (const auto* said = pod.meta.annotations.find(model::kReclaimable)) out.kept = out.kept || *said == "false";
    if (const auto* cost = pod.meta.annotations.find(kDeletionCost)) out.deletion_cost = number_in(*cost);
    out.priority = pod.spec->priority;
    out.created = pod.meta.created;
    out.dated = dated_.contains(key);
    return out;
}

// Nodes that are open to the pod, or closed for reasons that evictions can change, and large enough.
std::vector<uint32_t> SharesScene::may_stand(const model::Pod& pod, const share::Scene& scene) {
    const auto decision = world_.cluster().decide(pod);
    const auto& strikes = decision.verdict.strikes;
    std::vector<uint32_t> nodes;
    if (strikes.refused() != nullptr) return nodes;
    for (uint32_t i = 0; i < scene.nodes.size(); ++i) {
        const auto row = world_.ledger().row_of(scene.nodes[i].name);
        const auto* why = strikes.why(row);
        if (scene.nodes[i].lost || (!strikes.open(row) && (why == nullptr || why->unresolvable))) continue;
        bool large_enough = true;
        pod.spec->requests.for_each([&](model::ResourceId id, int64_t amount) {
            if (amount > scene.nodes[i].allocatable.get(id) && id != model::kPods) large_enough = false;
        });
        if (large_enough) nodes.push_back(i);
    }
    return nodes;
}

void SharesScene::add_pods(share::Scene& scene, bool limits) {
    const auto budgets = world_.ledger().budgets().all();
    const auto add = [&](const model::Pod& pod) -> share::ScenePod& {
        auto& added = scene.pods.emplace_back(scene_pod(pod, limits));
        for (uint32_t i = 0; i < budgets.size(); ++i) {
            if (budgets[i]->covers(pod.meta.ns, pod.meta.labels)) added.budgets.push_back(i);
        }
        return added;
    };
    std::vector<const model::Pod*> waiting;
    world_.cluster().each_pod([&](const model::Pod& pod) {
        if (pod.terminal()) return;
        if (!pod.node.empty()) {
            add(pod);
        } else if (!pod.meta.deleted) {
            waiting.push_back(&pod);
        }
    });
    const auto rank = [&](const model::Pod* pod) {
        return std::tuple(-static_cast<int64_t>(pod->spec->priority), pod->meta.created,
                          arrivals_.at(pod->meta.full_name()));
    };
    std::sort(waiting.begin(), waiting.end(), [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
    for (const auto* pod : waiting) {
        auto& added = add(*pod);
        if (!added.gated) added.may_stand = may_stand(*pod, scene);
    }
}

void SharesScene::add_holds(share::Scene& scene) {
    for (const auto& holding : world_.holdings()) {
        const auto reservation = world_.cluster().reservation(holding.name);
        if (!reservation || !model::holds_room(*reservation)) continue;
        share::SceneHold hold;
        hold.ns = namespace_of(*reservation);
        holding.allocatable.for_each([&](model::ResourceId id, int64_t amount) {
            const int64_t open = amount - holding.allocated.get(id);
            if (open > 0 && id != model::kPods) hold.amount.set(id, open);
        });
        if (const auto found = index_.find(holding.node); found != index_.end()) hold.node = found->second;
        if (!hold.ns.empty()) namespaces_.insert(hold.ns);
        if (!hold.amount.empty()) scene.holds.push_back(std::move(hold));
    }
}

void SharesScene::add_claims(share::Scene& scene) {
    for (const auto& claim : world_.ledger().volumes().claims().sorted()) {
        if (!claim->request) continue;
        share::SceneClaim out{claim->meta.ns, claim->meta.name, {}, !claim->volume.empty()};
        out.size.set(*model::intern_resource(model::kStorageKey), claim->request->value());
        if (!claim->class_name().empty()) {
            const auto key =
                model::intern_resource(fmt::format("{}{}", claim->class_name(), model::kClassStorageSuffix));
            if (key) out.size.set(*key, claim->request->value());
        }
        scene.claims.push_back(std::move(out));
    }
}

// As the server says; where a file has no status, as its controller would.
void SharesScene::add_budgets(share::Scene& scene) {
    for (const auto& budget : world_.ledger().budgets().all()) {
        const Budget& known = budgets_.at(budget->meta.full_name());
        if (known.has_status) {
            scene.budgets.push_back({budget->meta.full_name(), budget->disruptions_allowed});
            continue;
        }
        int64_t expected = 0, healthy = 0;
        world_.cluster().each_pod([&](const model::Pod& pod) {
            if (pod.terminal() || !budget->covers(pod.meta.ns, pod.meta.labels)) return;
            ++expected;
            if (!pod.node.empty() && !pod.meta.deleted) ++healthy;
        });
        const bool by_most = base::find(known.spec, {"maxUnavailable"}) != nullptr;
        const int64_t least = by_most ? expected - count_in(known.spec, "maxUnavailable", expected, 0)
                                      : count_in(known.spec, "minAvailable", expected, 1);
        scene.budgets.push_back({budget->meta.full_name(), std::max<int64_t>(0, healthy - least)});
    }
}

}  // namespace berth::cli
