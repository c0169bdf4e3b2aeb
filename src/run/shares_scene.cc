#include "run/shares_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/json_view.h"
#include "model/node_reservation.h"
#include "model/reservation_rules.h"
#include "model/resource_names.h"
#include "model/times.h"

namespace berth::run {
namespace {

constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";

template <auto Read>
auto read_with(const Json& object) -> decltype(Read(std::declval<JsonView>())) {
    base::JsonParser parser;
    const std::string text = base::to_text(object);
    return Read(TRY(parser.parse(text)));
}

// Since when it is not ready; none: it is, or says nothing.
std::optional<base::Time> not_ready_since(const Json& node) {
    const Json* conditions = base::find(node, {"status", "conditions"});
    if (conditions == nullptr || !conditions->is_array()) return std::nullopt;
    for (const auto& condition : conditions->as_array()) {
        if (base::find_string(condition, {"type"}) != "Ready") continue;
        if (base::find_string(condition, {"status"}) == "True") return std::nullopt;
        return model::parse_time(base::find_string(condition, {"lastTransitionTime"})).value_or(base::Time{INT64_MIN});
    }
    return std::nullopt;
}

bool is_lost(base::Time since, base::Time now) {
    return since.nanos <= now.nanos - base::Duration(share::kLostAfter).count();
}

std::string key_of_object(std::string_view kind, std::string_view full_name) {
    return fmt::format("{}/{}", kind, full_name);
}

int64_t number_in(std::string_view text) {
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// What decides where they may stand is the same.
bool alike(const model::Pod& a, const model::Pod& b) {
    return a.meta.ns == b.meta.ns && a.meta.labels == b.meta.labels && a.meta.annotations == b.meta.annotations &&
           a.meta.owners == b.meta.owners && *a.spec == *b.spec;
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

std::vector<std::string> SharesScene::warnings() const {
    std::vector<std::string> all = world_.warnings();
    for (const auto& [object, text] : warnings_) all.push_back(text);
    return all;
}

Result<bool> SharesScene::put(const Json& object) {
    const std::string_view kind = base::find_string(object, {"kind"});
    const std::string_view version = base::find_string(object, {"apiVersion"});
    const std::string_view group = version.substr(0, version.find('/') == version.npos ? 0 : version.find('/'));
    const std::string name(base::find_string(object, {"metadata", "name"}));
    std::string ns(base::find_string(object, {"metadata", "namespace"}));
    if (ns.empty()) ns = "default";
    const std::string full_name = ns + "/" + name;
    if (kind == "Consumer" && (version.empty() || group == model::kSharesGroup)) return put_consumer(object);
    if (kind == "ResourceQuota" && group.empty()) return put_quota(object, full_name);
    if (kind == "Allocation" && group == model::kSharesGroup) return true;  // computed anew
    note(object, kind, full_name);
    const bool known = TRY(world_.put(object));
    if (kind != "Pod" && kind != "Reservation") return known;
    const bool reservation = kind == "Reservation";
    const std::string fault = world_.fault_of(reservation, reservation ? "" : ns, name);
    warnings_.erase(key_of_object(kind, full_name));
    if (!fault.empty()) warnings_[key_of_object(kind, full_name)] = fault + "; it is not counted";
    return known;
}

// One that cannot be read harms nobody else: it counts as if it said nothing.
Result<bool> SharesScene::put_consumer(const Json& object) {
    const std::string name(base::find_string(object, {"metadata", "name"}));
    auto read = read_with<model::read_consumer>(object);
    if (read && name.empty()) read = base::bad_request("Consumer: metadata.name is missing");
    consumers_.erase(name);
    broken_consumers_.erase(name);
    warnings_.erase(key_of_object("Consumer", name));
    if (read) {
        consumers_.insert_or_assign(name, std::move(*read));
        return true;
    }
    warnings_[key_of_object("Consumer", name)] = read.error().message + "; it is ignored";
    if (!name.empty()) broken_consumers_[name] = read.error().message;
    return true;
}

Result<bool> SharesScene::put_quota(const Json& object, const std::string& full_name) {
    auto quota = read_with<model::read_resource_quota>(object);
    quotas_.erase(full_name);
    warnings_.erase(key_of_object("ResourceQuota", full_name));
    if (quota) {
        quotas_.insert_or_assign(full_name, std::move(*quota));
    } else {
        warnings_[key_of_object("ResourceQuota", full_name)] = quota.error().message + "; it is ignored";
    }
    return true;
}

// What a World does not keep.
void SharesScene::note(const Json& object, std::string_view kind, const std::string& full_name) {
    const std::string name(base::find_string(object, {"metadata", "name"}));
    if (kind == "Namespace") namespaces_.insert(name);
    if (kind == "Node") {
        not_ready_.erase(name);
        if (const auto since = not_ready_since(object)) not_ready_[name] = *since;
    }
    if (kind == "PodDisruptionBudget") {
        const Json* spec = base::find(object, {"spec"});
        budgets_[full_name] = {spec != nullptr ? *spec : Json(JsonObject{}),
                               base::find(object, {"status", "disruptionsAllowed"}) != nullptr};
    }
    if (kind == "Pod") {
        if (!base::find_string(object, {"metadata", "creationTimestamp"}).empty()) dated_.insert(full_name);
        limits_[full_name] = limits_of(object);
        if (arrivals_.emplace(full_name, arrived_).second) ++arrived_;
    }
}

void SharesScene::remove(std::string_view kind, std::string_view ns, std::string_view name) {
    const std::string alone(name);
    const std::string full_name = fmt::format("{}/{}", ns.empty() ? "default" : ns, name);
    warnings_.erase(key_of_object(kind, kind == "Consumer" ? alone : full_name));
    if (kind == "Consumer") {
        consumers_.erase(alone);
        broken_consumers_.erase(alone);
        return;
    }
    if (kind == "ResourceQuota") {
        quotas_.erase(full_name);
        return;
    }
    if (kind == "Namespace") namespaces_.erase(alone);
    if (kind == "Node") not_ready_.erase(alone);
    if (kind == "Pod") {
        arrivals_.erase(full_name);
        dated_.erase(full_name);
        limits_.erase(full_name);
    }
    world_.remove(kind, ns, name);
    if (kind == "PodDisruptionBudget") budgets_.erase(full_name);
}

void SharesScene::advance_to(base::Time now) {
    now_ = now;
    world_.cluster().advance_to(now);
}

std::optional<base::Time> SharesScene::next_change() const {
    std::optional<base::Time> out;
    for (const auto& [name, since] : not_ready_) {
        if (is_lost(since, now_)) continue;
        const base::Time at = since + share::kLostAfter;
        if (!out || at < *out) out = at;
    }
    return out;
}

bool SharesScene::names_limits() const {
    bool any = false;
    const auto look = [&](model::ResourceId id, int64_t) { any = any || model::is_limit(model::resource_name(id)); };
    for (const auto& [name, consumer] : consumers_) {
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
    scene.namespaces.assign(namespaces_.begin(), namespaces_.end());
    add_nodes(scene);
    add_budgets(scene);
    add_pods(scene, limits || names_limits());
    add_holds(scene);
    add_claims(scene);
    for (const auto& [name, consumer] : consumers_) scene.consumers.push_back(consumer);
    for (const auto& [name, quota] : quotas_) scene.quotas.push_back(quota);
    return scene;
}

void SharesScene::add_nodes(share::Scene& scene) {
    const auto& ledger = world_.ledger();
    index_.clear();
    std::map<std::string, ledger::Row> rows;
    for (ledger::Row row = 0; row < ledger.rows(); ++row) {
        if (ledger.alive(row)) rows.emplace(ledger.name(row), row);
    }
    for (const auto& [name, row] : rows) {
        const model::Node& node = ledger.node(row);
        index_[name] = static_cast<uint32_t>(scene.nodes.size());
        const auto away = not_ready_.find(name);
        scene.nodes.push_back({name, model::view_of(node).allocatable, node.unschedulable,
                               away != not_ready_.end() && is_lost(away->second, now_)});
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
    for (const auto& gate : pod.gates) (gate == model::kShareGate ? out.held : out.gated) = true;
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
    const model::Pod* like = nullptr;  // those of one set come one after the other, and may stand in the same places
    for (const auto* pod : waiting) {
        const bool same = like != nullptr && alike(*pod, *like);
        std::vector<uint32_t> places;
        if (same) places = scene.pods.back().may_stand;
        auto& added = add(*pod);
        like = nullptr;
        if (added.gated) continue;
        added.may_stand = same ? std::move(places) : may_stand(*pod, scene);
        like = pod;
    }
}

void SharesScene::add_holds(share::Scene& scene) {
    for (const auto& holding : world_.holdings()) {
        const auto reservation = world_.cluster().reservation(holding.name);
        if (!reservation || !model::holds_room(*reservation)) continue;
        share::SceneHold hold;
        hold.ns = model::namespace_of_owners(*reservation);
        holding.allocatable.for_each([&](model::ResourceId id, int64_t amount) {
            const int64_t open = amount - holding.allocated.get(id);
            if (open > 0 && id != model::kPods) hold.amount.set(id, open);
        });
        if (const auto found = index_.find(holding.node); found != index_.end()) hold.node = found->second;
        if (!hold.ns.empty()) scene.namespaces.push_back(hold.ns);
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
                model::intern_asked_resource(fmt::format("{}{}", claim->class_name(), model::kClassStorageSuffix));
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

}  // namespace berth::run
