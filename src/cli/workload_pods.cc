#include "cli/workload_pods.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_view.h"
#include "control/pods.h"
#include "model/workloads.h"

namespace berth::cli {
namespace {

struct WorkloadKind {
    std::string_view kind, group, version;
};
constexpr WorkloadKind kKinds[] = {
    {"Deployment", "apps", "apps/v1"},   {"ReplicaSet", "apps", "apps/v1"}, {"StatefulSet", "apps", "apps/v1"},
    {"DaemonSet", "apps", "apps/v1"},    {"Job", "batch", "batch/v1"},      {"CronJob", "batch", "batch/v1"},
    {"ReplicationController", "", "v1"},
};

const WorkloadKind* kind_of(const Json& object) {
    const auto kind = base::find_string(object, {"kind"});
    const auto version = base::find_string(object, {"apiVersion"});
    const auto slash = version.find('/');
    const auto group = slash == version.npos ? "" : version.substr(0, slash);
    for (const auto& row : kKinds) {
        if (row.kind == kind && (version.empty() || row.group == group)) return &row;
    }
    return nullptr;
}

bool has_condition(const Json& document, std::initializer_list<std::string_view> types) {
    const Json* conditions = base::find(document, {"status", "conditions"});
    if (!conditions || !conditions->is_array()) return false;
    return std::any_of(conditions->as_array().begin(), conditions->as_array().end(), [&](const Json& condition) {
        const auto type = base::find_string(condition, {"type"});
        return std::find(types.begin(), types.end(), type) != types.end() &&
               base::find_string(condition, {"status"}) == "True";
    });
}

bool is_suspended(const Json& document) {
    const Json* suspend = base::find(document, {"spec", "suspend"});
    return suspend && suspend->is_bool() && suspend->as_bool();
}

// Pods that should run now.
int64_t wanted(std::string_view kind, const Json& document) {
    if (kind != "Job") return control::integer_at(document, {"spec", "replicas"}, 1);
    if (is_suspended(document) || has_condition(document, {"Complete", "Failed"})) return 0;
    const int64_t parallel = control::integer_at(document, {"spec", "parallelism"}, 1);
    const int64_t completions = control::integer_at(document, {"spec", "completions"}, INT64_MAX);
    const int64_t left = completions - control::integer_at(document, {"status", "succeeded"}, 0);
    return std::clamp<int64_t>(left, 0, parallel);
}

Selector selector_of(const Json& document) {
    const std::string text = base::to_text(document);
    base::JsonParser parser;
    const auto view = parser.parse(text);
    if (!view) return Selector::nothing();
    // The selectors of all but ReplicationControllers are written alike.
    const bool plain = base::find_string(document, {"kind"}) == "ReplicationController";
    const auto kind = plain ? model::WorkloadKind::ReplicationController : model::WorkloadKind::ReplicaSet;
    auto read = model::read_workload(kind, *view);
    return read ? read->selector : Selector::nothing();
}

// The claims of a StatefulSet's pod: the pod names them, and those that are not there are made.
Status add_claims(const Json& document, Json& pod, const std::string& ns, const std::string& name, run::World& world) {
    const Json* templates = base::find(document, {"spec", "volumeClaimTemplates"});
    if (!templates || !templates->is_array()) return {};
    JsonArray volumes;
    if (const Json* given = base::find(pod, {"spec", "volumes"}); given && given->is_array()) {
        volumes = given->as_array();
    }
    for (const auto& wish : templates->as_array()) {
        const std::string title(base::find_string(wish, {"metadata", "name"}));
        const std::string claim_name = fmt::format("{}-{}", title, name);
        volumes.push_back(
            JsonObject{{"name", title}, {"persistentVolumeClaim", JsonObject{{"claimName", claim_name}}}});
        if (world.ledger().volumes().claims().seen(ns + "/" + claim_name)) continue;
        Json claim = wish;
        claim.as_object()["kind"] = "PersistentVolumeClaim";
        claim.as_object()["apiVersion"] = "v1";
        JsonObject& meta = base::object_at(claim, {"metadata"});
        meta["name"] = claim_name;
        meta["namespace"] = ns;
        TRY(world.put(claim));
    }
    base::object_at(pod, {"spec"})["volumes"] = std::move(volumes);
    return {};
}

}  // namespace

bool WorkloadPods::take(const Json& object) {
    const auto* row = kind_of(object);
    if (row == nullptr || base::find_string(object, {"metadata", "name"}).empty()) return false;
    Json named = object;
    JsonObject& meta = base::object_at(named, {"metadata"});
    if (base::find_string(named, {"metadata", "namespace"}).empty()) meta["namespace"] = "default";
    Workload workload{std::string(row->kind), std::string(row->version),
                      control::read_object(std::make_shared<const std::string>(base::to_text(named)), 0)};
    if (!workload.object) return false;
    const auto [found, fresh] = known_.emplace(workload.title(), all_.size());
    if (fresh) {
        all_.push_back(std::move(workload));
    } else {
        all_[found->second] = std::move(workload);
    }
    return true;
}

// A ReplicaSet that is not in the dump is named after its Deployment and the hash of the template.
WorkloadPods::Tally WorkloadPods::tally(const run::World& world) const {
    Tally out;
    world.cluster().each_pod([&](const model::Pod& pod) {
        if (pod.terminal() || pod.meta.deleted) return;
        const auto* controller = pod.meta.controller();
        if (controller == nullptr) return out.alone.push_back(pod.meta);
        const std::string owner = fmt::format("{} {}/{}", controller->kind, pod.meta.ns, controller->name);
        ++out.by_controller[owner];
        if (controller->kind != "ReplicaSet") return;
        const auto set = known_.find(owner);
        if (set != known_.end()) {
            const auto* above = all_[set->second].object->meta.controller();
            if (above) ++out.by_controller[fmt::format("{} {}/{}", above->kind, pod.meta.ns, above->name)];
            return;
        }
        const auto* hash = pod.meta.labels.find("pod-template-hash");
        if (hash && controller->name.ends_with("-" + *hash)) {
            const auto length = controller->name.size() - hash->size() - 1;
            ++out.by_controller[fmt::format("Deployment {}/{}", pod.meta.ns, controller->name.substr(0, length))];
        }
    });
    return out;
}

// Its controller would adopt those that nobody controls and that it selects.
int64_t WorkloadPods::present(const Workload& workload, const Tally& tally) const {
    const auto counted = tally.by_controller.find(workload.title());
    int64_t out = counted == tally.by_controller.end() ? 0 : counted->second;
    if (tally.alone.empty()) return out;
    const Selector selector = selector_of(workload.object->document());
    if (selector.matches_everything()) return out;
    for (const auto& pod : tally.alone) {
        out += pod.ns == workload.object->meta.ns && selector.matches(pod.labels);
    }
    return out;
}

bool WorkloadPods::is_part_of_another(const Workload& workload) const {
    const auto* above = workload.object->meta.controller();
    return above && known_.contains(fmt::format("{} {}/{}", above->kind, workload.object->meta.ns, above->name));
}

Status WorkloadPods::make(const Workload& workload, int64_t count, run::World& world) {
    const control::Object& owner = *workload.object;
    const Json pod_template = *base::find(owner.document(), {"spec", "template"});
    const bool ordered = workload.kind == "StatefulSet";
    int64_t number = ordered ? control::integer_at(owner.document(), {"spec", "ordinals", "start"}, 0) : 1;
    for (; count > 0; ++number) {
        const std::string name = fmt::format("{}-{}", owner.meta.name, number);
        if (world.cluster().pod(owner.meta.ns, name) != nullptr) continue;
        Json pod = control::pod_from_template(pod_template, owner, workload.kind, workload.version);
        base::object_at(pod, {"metadata"})["name"] = name;
        if (ordered) TRY(add_claims(owner.document(), pod, owner.meta.ns, name, world));
        TRY(world.put(pod));
        --count;
    }
    return {};
}

Result<WorkloadPods::Expansion> WorkloadPods::expand(run::World& world) const {
    Expansion out;
    const Tally there = tally(world);
    const auto leave_out = [&](const Workload& workload, std::string_view why) {
        out.not_counted.push_back(fmt::format("{}: {}", workload.title(), why));
    };
    for (const auto& workload : all_) {
        const Json& document = workload.object->document();
        if (workload.object->meta.deleted || is_part_of_another(workload)) continue;
        if (workload.kind == "CronJob") {
            if (!is_suspended(document)) leave_out(workload, "its pods come at times of their own");
            continue;
        }
        if (workload.kind == "DaemonSet") {
            const int64_t desired = control::integer_at(document, {"status", "desiredNumberScheduled"}, -1);
            const int64_t missing = desired - present(workload, there);
            if (desired < 0) leave_out(workload, "it does not say how many pods it has");
            if (desired >= 0 && missing > 0) leave_out(workload, fmt::format("{} of its pods are not there", missing));
            continue;
        }
        const int64_t missing = wanted(workload.kind, document) - present(workload, there);
        if (missing <= 0) continue;
        if (!base::find(document, {"spec", "template"})) {
            leave_out(workload, "it has no template to make its pods from");
            continue;
        }
        TRY(make(workload, missing, world));
        out.made.push_back({workload.title(), missing});
    }
    return out;
}

std::optional<Json> WorkloadPods::pod_of(const Json& object) {
    if (base::find_string(object, {"kind"}) == "Pod") return object;
    const auto* row = kind_of(object);
    if (row == nullptr) return std::nullopt;
    const Json* pod_template = base::find(object, {"spec", "template"});
    if (row->kind == "CronJob") pod_template = base::find(object, {"spec", "jobTemplate", "spec", "template"});
    if (pod_template == nullptr) return std::nullopt;
    Json pod = *pod_template;
    if (!pod.is_object()) return std::nullopt;
    pod.as_object()["kind"] = "Pod";
    JsonObject& meta = base::object_at(pod, {"metadata"});
    meta["name"] = base::find_string(object, {"metadata", "name"});
    if (const auto ns = base::find_string(object, {"metadata", "namespace"}); !ns.empty()) meta["namespace"] = ns;
    return pod;
}

std::vector<std::string> WorkloadPods::kinds() {
    std::vector<std::string> out;
    for (const auto& row : kKinds) out.emplace_back(row.kind);
    return out;
}

}  // namespace berth::cli
