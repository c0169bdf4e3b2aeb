// One pod on every node that the template allows.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/json_view.h"
#include "control/pods.h"
#include "control/reconciler.h"
#include "control/revisions.h"
#include "model/node.h"
#include "model/node_selector.h"
#include "model/pod.h"

namespace berth::control {
namespace {

constexpr const char* kDaemonSets = "apps/daemonsets";
constexpr size_t kDaemonsAtOnce = 250;
// A pod that failed makes room for the next one so long after it was made.
constexpr base::Duration kDaemonRest = std::chrono::seconds(10);

// What daemons put up with: they stay where a node has trouble, and run where nobody else may.
void add_tolerations(JsonObject& spec) {
    JsonArray all;
    if (const Json* given = spec.if_contains("tolerations"); given && given->is_array()) all = given->get_array();
    const auto add = [&](std::string_view condition, std::string_view effect) {
        all.push_back(JsonObject{
            {"key", fmt::format("node.kubernetes.io/{}", condition)}, {"operator", "Exists"}, {"effect", effect}});
    };
    add("not-ready", "NoExecute");
    add("unreachable", "NoExecute");
    for (const auto* condition : {"disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"}) {
        add(condition, "NoSchedule");
    }
    const Json* host = spec.if_contains("hostNetwork");
    if (host && host->is_bool() && host->get_bool()) add("network-unavailable", "NoSchedule");
    spec["tolerations"] = std::move(all);
}

// Exactly this node, besides what the template asks of its labels.
void pin(JsonObject& spec, const std::string& node) {
    const JsonArray fields{JsonObject{{"key", "metadata.name"}, {"operator", "In"}, {"values", JsonArray{Json(node)}}}};
    Json whole(std::move(spec));
    constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
    JsonObject& required = base::object_at(whole, {"affinity", "nodeAffinity", kRequired});
    Json* terms = required.if_contains("nodeSelectorTerms");
    if (terms && terms->is_array() && !terms->get_array().empty()) {
        for (auto& term : terms->get_array()) term.as_object()["matchFields"] = fields;
    } else {
        required["nodeSelectorTerms"] = JsonArray{JsonObject{{"matchFields", fields}}};
    }
    spec = std::move(whole.as_object());
}

// Where the template's pods may be.
struct Places {
    model::PodSpec spec;
    std::optional<model::NodeSelector> required;

    explicit Places(Json pod) {
        add_tolerations(base::object_at(pod, {"spec"}));
        const std::string text = base::to_text(pod);
        base::JsonParser parser;
        const auto view = parser.parse(text);
        const auto read = view ? model::read_pod(*view) : Result<model::Pod>(view.error());
        if (read) spec = *read->spec;
        if (spec.required_nodes) required.emplace(*spec.required_nodes);
    }
    bool allows(const Object& node) const {
        if (!spec.node_name.empty() && spec.node_name != node.meta.name) return false;
        for (const auto& [key, value] : spec.node_selector) {
            const auto* has = node.meta.labels.find(key);
            if (!has || *has != value) return false;
        }
        return !required || required->matches(node.meta.name, node.meta.labels);
    }
    bool tolerates(const std::vector<model::Taint>& taints, bool those_who_run) const {
        return std::all_of(taints.begin(), taints.end(), [&](const auto& taint) {
            const bool counts = taint.effect == "NoExecute" || (taint.effect == "NoSchedule" && !those_who_run);
            return !counts || model::tolerates(spec.tolerations, taint);
        });
    }
};

std::vector<model::Taint> node_taints(const Object& node) {
    base::JsonParser parser;
    const auto view = parser.parse(node.text());
    const auto read = view ? model::read_node(*view) : Result<model::Node>(view.error());
    return read ? read->taints : std::vector<model::Taint>();
}

// Where a pod stands, or was made for.
std::string daemon_node(const Object& pod) {
    if (!pod.node.empty()) return pod.node;
    const Json* terms = base::find(
        pod.document(),
        {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
    if (!terms || !terms->is_array() || terms->get_array().empty()) return "";
    const Json* fields = base::find(terms->get_array()[0], {"matchFields"});
    if (!fields || !fields->is_array() || fields->get_array().empty()) return "";
    const Json* values = base::find(fields->get_array()[0], {"values"});
    if (!values || !values->is_array() || values->get_array().empty() || !values->get_array()[0].is_string()) return "";
    return std::string(values->get_array()[0].get_string());
}

// One set, its nodes and pods, at one time.
class Daemons {
public:
    Daemons(const Object& set, const Objects& objects, base::Time now)
        : set_(set), objects_(objects), now_(now), revisions_(set, "DaemonSet", objects) {}

    Reconciled reconcile() {
        revisions_.keep(out_.writes);
        if (!revisions_.update()) return std::move(out_);  // pods are marked with its name
        look();
        for (auto& [name, place] : places_) leave_one(name, place);
        if (base::find_string(set_.document(), {"spec", "updateStrategy", "type"}) != "OnDelete") roll();
        tell();
        return std::move(out_);
    }

private:
    struct Place {
        bool wanted = false;            // a pod should be made here
        bool may_stay = false;          // one that is here may go on
        std::vector<ObjectPtr> active;  // the oldest first
    };

    void look() {
        const Places places(pod_from_template(*Revisions::template_of(*revisions_.update()), set_, "DaemonSet", ""));
        for (const auto& node : objects_.list("nodes")) {
            Place& place = places_[node->meta.name];
            if (!places.allows(*node)) continue;
            const auto taints = node_taints(*node);
            place.wanted = places.tolerates(taints, false);
            place.may_stay = places.tolerates(taints, true);
        }
        for (const auto& pod : objects_.controlled_by("pods", set_.meta.uid)) {
            if (is_active(*pod)) {
                places_[daemon_node(*pod)].active.push_back(pod);
                continue;
            }
            leaving_.insert(daemon_node(*pod));
            if (is_deleting(*pod)) continue;
            if (pod->meta.created + kDaemonRest <= now_) {
                remove(*pod);
            } else {
                look_again(pod->meta.created + kDaemonRest);
            }
        }
        for (auto& [name, place] : places_) {
            std::sort(place.active.begin(), place.active.end(), [](const auto& a, const auto& b) {
                return std::tuple(a->meta.created, a->meta.name) < std::tuple(b->meta.created, b->meta.name);
            });
        }
    }

    // Brings one node to one pod; with two of different revisions roll() knows which has to go.
    void leave_one(const std::string& node, const Place& place) {
        if (!place.wanted && !place.may_stay) {
            for (const auto& pod : place.active) remove(*pod);
            return;
        }
        if (place.active.empty() && place.wanted && !leaving_.contains(node)) return make(node);
        std::vector<ObjectPtr> of_today;
        for (const auto& pod : place.active) {
            if (is_updated(*pod)) of_today.push_back(pod);
        }
        const bool surges = of_today.size() == 1 && place.active.size() == 2;
        const auto& too_many = of_today.empty() || surges ? place.active : of_today;
        for (size_t i = surges ? 2 : 1; i < too_many.size(); ++i) remove(*too_many[i]);
    }

    void make(const std::string& node) {
        if (made_++ >= kDaemonsAtOnce) return;
        Json pod = pod_from_template(*Revisions::template_of(*revisions_.update()), set_, "DaemonSet", "apps/v1");
        base::object_at(pod, {"metadata", "labels"})[kRevisionLabel] = revisions_.update()->meta.name;
        JsonObject& spec = base::object_at(pod, {"spec"});
        add_tolerations(spec);
        pin(spec, node);
        out_.writes.push_back(model::create_object("pods", set_.meta.ns, std::move(pod)));
    }

    void remove(const Object& pod) {
        if (removed_.insert(pod.meta.uid).second) out_.writes.push_back(delete_object("pods", pod.meta));
    }

    bool is_updated(const Object& pod) const {
        return pod.meta.labels.get(kRevisionLabel) == revisions_.update()->meta.name;
    }

    bool is_available(const Object& pod) {
        const auto since = ready_since(pod);
        if (!since) return false;
        const base::Time due =
            *since + std::chrono::seconds(integer_at(set_.document(), {"spec", "minReadySeconds"}, 0));
        if (due <= now_) return true;
        look_again(due);
        return false;
    }

    void look_again(base::Time due) { out_.again = out_.again ? std::min(*out_.again, due) : due; }

    // Old pods that are not available go at once; of the others as many as maxUnavailable leaves. With maxSurge the new
    // one comes first, and the old one goes when it is available.
    void roll() {
        const auto at = [&](std::string_view field) {
            return base::find(set_.document(), {"spec", "updateStrategy", "rollingUpdate", field});
        };
        const auto wanted =
            std::count_if(places_.begin(), places_.end(), [](const auto& p) { return p.second.wanted; });
        const int64_t surge = scaled(at("maxSurge"), wanted, true, 0);
        int64_t spare = surge > 0 ? 0 : scaled(at("maxUnavailable"), wanted, true, 1);
        int64_t surging = 0;
        std::vector<std::pair<std::string, ObjectPtr>> old;
        for (const auto& [node, place] : places_) {
            if (!place.wanted) continue;
            const auto up = [&](bool updated) {
                return std::find_if(place.active.begin(), place.active.end(), [&](const auto& pod) {
                    return is_updated(*pod) == updated && !removed_.contains(pod->meta.uid);
                });
            };
            const auto before = up(false), after = up(true);
            const bool has_old = before != place.active.end(), has_new = after != place.active.end();
            const bool new_runs = has_new && is_available(**after);
            if (has_old && new_runs) remove(**before);
            if (has_old && has_new) surging += !new_runs;
            if (has_new || !has_old) {
                spare -= !new_runs;
            } else if (!is_available(**before)) {
                spare -= 1;
                remove(**before);
            } else {
                old.emplace_back(node, *before);
            }
        }
        for (const auto& [node, pod] : old) {
            if (surge > 0 ? surging++ < surge : spare-- > 0) surge > 0 ? make(node) : remove(*pod);
        }
    }

    void tell() {
        int64_t desired = 0, current = 0, misplaced = 0, ready = 0, available = 0, updated = 0;
        std::set<std::string, std::less<>> needed;
        for (const auto& [node, place] : places_) {
            for (const auto& pod : place.active) needed.emplace(pod->meta.labels.get(kRevisionLabel));
            if (!place.wanted) {
                misplaced += !place.active.empty();
                continue;
            }
            ++desired;
            if (place.active.empty()) continue;
            ++current;
            const auto any = [&](auto holds) { return std::any_of(place.active.begin(), place.active.end(), holds); };
            ready += any([](const auto& pod) { return is_ready(*pod); });
            available += any([&](const auto& pod) { return is_available(*pod); });
            updated += any([&](const auto& pod) { return is_updated(*pod); });
        }
        revisions_.truncate(needed, out_.writes);
        const JsonObject status{{"observedGeneration", integer_at(set_.document(), {"metadata", "generation"}, 0)},
                                {"desiredNumberScheduled", desired},
                                {"currentNumberScheduled", current},
                                {"numberMisscheduled", misplaced},
                                {"numberReady", ready},
                                {"numberAvailable", available},
                                {"numberUnavailable", desired - available},
                                {"updatedNumberScheduled", updated}};
        if (!says(set_, status)) out_.writes.push_back(patch_status(kDaemonSets, set_.meta, status));
    }

    const Object& set_;
    const Objects& objects_;
    base::Time now_;
    Revisions revisions_;
    std::map<std::string, Place> places_;  // by node
    std::set<std::string> leaving_;        // nodes whose pod is on its way out
    std::set<std::string> removed_;        // uids
    size_t made_ = 0;
    Reconciled out_;
};

class DaemonSets final : public Reconciler {
public:
    std::string_view name() const override { return "daemonset"; }
    std::string resource() const override { return kDaemonSets; }
    std::vector<std::string> watches() const override {
        return {kDaemonSets, "pods", "nodes", "apps/controllerrevisions"};
    }

    std::vector<Key> concerned(const std::string& resource, const Object& object,
                               const Objects& objects) const override {
        if (resource == kDaemonSets) return {{object.meta.ns, object.meta.name}};
        std::vector<Key> out;
        if (resource == "nodes") {
            for (const auto& set : objects.list(kDaemonSets)) out.push_back({set->meta.ns, set->meta.name});
            return out;
        }
        const auto* controller = object.meta.controller();
        if (controller && controller->kind == "DaemonSet") out.push_back({object.meta.ns, controller->name});
        return out;
    }

    Reconciled reconcile(const Key& target, const Objects& objects, base::Time now) const override {
        const auto set = objects.find(kDaemonSets, target.ns, target.name);
        if (!set || is_deleting(*set)) return {};
        return Daemons(*set, objects, now).reconcile();
    }
};

}  // namespace

std::unique_ptr<Reconciler> daemonset_reconciler() {
    return std::make_unique<DaemonSets>();
}

}  // namespace berth::control
