#include <fmt/format.h>

#include "api/admission_steps.h"
#include "api/meta.h"
#include "api/service_ranges.h"
#include "api/wire.h"
#include "base/json.h"
#include "base/json_view.h"
#include "base/mentions.h"
#include "model/kinds/path.h"
#include "model/kinds/validate.h"
#include "model/node_reservation.h"
#include "model/preemption_hold.h"
#include "model/reservation.h"

namespace berth::api {
namespace {

bool same(const Json* a, const Json* b) {
    return a == nullptr || b == nullptr ? a == b : *a == *b;
}

const Json* old_at(const Admission& entry, std::initializer_list<std::string_view> path) {
    return entry.before != nullptr ? base::find(*entry.before, path) : nullptr;
}

bool may_write_status(const Identity& who) {
    return who.in(kSchedulers) || who.in(kControllers);
}

// Those that the scheduler keeps for preempting pods are its own: it drops them as it sees fit.
Status guard_rooms(Admission& entry) {
    const auto path = {std::string_view("metadata"), std::string_view("labels"), model::kMadeFor};
    const Json* now = base::find(entry.after, path);
    const Json* old = old_at(entry, path);
    const Json room(model::kForPreemption);
    if (same(now, old) || (!same(now, &room) && !same(old, &room))) return {};
    return forbidden_entry(entry, fmt::format("only the scheduler may set or change the label {}: {}, not User \"{}\"",
                                              model::kMadeFor, model::kForPreemption, entry.call.who.user));
}

Status give_node_ports(ApiContext& context, JsonObject& spec) {
    Json* ports = spec.if_contains("ports");
    if (ports == nullptr || !ports->is_array()) return {};
    for (auto& port : ports->as_array()) {
        if (model::int_at(port, ".nodePort") != 0) continue;
        port.as_object()["nodePort"] = TRY(context.services->node_port(context.ids));
    }
    return {};
}

// What was found room for is held as it was: a port or a claim that is added later may be another's.
Status check_held(const Admission& entry) {
    if (entry.before == nullptr) return {};
    const auto phase = model::string_at(*entry.before, ".status.phase");
    if (phase != "Available" && phase != "Waiting") return {};
    std::vector<base::Cause> causes;
    for (const auto* field : {"template", "allocatePolicy"}) {
        if (same(old_at(entry, {"spec", field}), base::find(entry.after, {"spec", field}))) continue;
        causes.push_back(forbidden_value(fmt::format("spec.{}", field),
                                         fmt::format("may not change while the reservation holds room on node {}; "
                                                     "make another one and delete this",
                                                     model::string_at(*entry.before, ".status.nodeName"))));
    }
    if (causes.empty()) return {};
    return invalid_entry(entry, std::move(causes));
}

// What a node has is an amount that can be counted with: not below nothing, and of 63 bits.
void check_size(std::string_view field, std::string_view name, const Json& value, std::vector<base::Cause>& causes) {
    const std::string text = value.is_string() ? std::string(value.as_string()) : base::to_text(value);
    const auto amount = Quantity::parse(text);
    if (!amount) return;
    const auto most = name == "cpu" ? Quantity::from_milli(INT64_MAX) : Quantity::from_value(INT64_MAX);
    const auto at = fmt::format("{}[{}]", field, name);
    if (amount->is_negative()) causes.push_back(invalid_value(at, text, "must be greater than or equal to 0"));
    if (*amount > most) causes.push_back(invalid_value(at, text, "is more than can be counted"));
}

Status check_sizes(const Admission& entry) {
    std::vector<base::Cause> causes;
    for (const std::string_view list : {"capacity", "allocatable"}) {
        const Json* sizes = base::find(entry.after, {"status", list});
        if (sizes == nullptr || !sizes->is_object() || same(sizes, old_at(entry, {"status", list}))) continue;
        for (const auto& [name, value] : sizes->as_object()) {
            check_size(fmt::format("status.{}", list), name, value, causes);
        }
    }
    if (causes.empty()) return {};
    return invalid_entry(entry, std::move(causes));
}

// The class for claims that name none: of those that are marked the newest, then the first by name; empty: none is.
Result<std::string> default_storage_class(const Admission& entry) {
    std::string chosen;
    std::string since;
    for (const auto& record : TRY(entry.context.store.list({std::string("storage.k8s.io/storageclasses")})).records) {
        if (!base::mentions(*record->bytes, "is-default-class")) continue;
        const Json row = TRY(stored_object(*record));
        const auto marked = [&](std::string_view key) {
            return base::find_string(row, {"metadata", "annotations", key}) == "true";
        };
        const auto created = meta_text(row, "creationTimestamp");
        if (!marked("storageclass.kubernetes.io/is-default-class") &&
            !marked("storageclass.beta.kubernetes.io/is-default-class")) {
            continue;
        }
        if (!chosen.empty() && created <= since) continue;
        chosen = record->key.name;
        since = created;
    }
    return chosen;
}

}  // namespace

Status guard_allocations(Admission& entry) {
    const Identity& who = entry.call.who;
    if (who.in(kImporters)) return {};
    const bool status = is_reservation(entry) && entry.call.subresource == "status";
    if (status && !may_write_status(who)) {
        return forbidden_entry(
            entry, fmt::format("only the scheduler may write a reservation's status, not User \"{}\"", who.user));
    }
    if (who.in(kSchedulers)) return {};
    if (is_reservation(entry)) return guard_rooms(entry);
    if (!is_kind(entry, "", "pods")) return {};
    for (const auto key : model::kPlacementAnnotations) {
        const auto path = {std::string_view("metadata"), std::string_view("annotations"), key};
        if (same(base::find(entry.after, path), old_at(entry, path))) continue;
        return forbidden_entry(
            entry,
            fmt::format("only the scheduler may set or change the annotation {}, not User \"{}\"", key, who.user));
    }
    return {};
}

Status admit_namespace(Admission& entry) {
    if (!is_kind(entry, "", "namespaces")) return {};
    const std::string name(meta_text(entry.after, "name"));
    base::object_at(entry.after, {"metadata", "labels"})["kubernetes.io/metadata.name"] = name;
    if (entry.before != nullptr) return {};
    base::object_at(entry.after, {"spec"})["finalizers"] = JsonArray{"kubernetes"};
    entry.after.as_object()["status"] = JsonObject{{"phase", "Active"}};
    return {};
}

Status admit_service(Admission& entry) {
    if (!is_kind(entry, "", "services") || entry.call.subresource == "status") return {};
    const auto type = model::string_at(entry.after, ".spec.type");
    if (type == "ExternalName") return {};
    JsonObject& spec = base::object_at(entry.after, {"spec"});
    if (entry.before == nullptr && !brings_status(entry)) {
        entry.after.as_object()["status"] = JsonObject{{"loadBalancer", JsonObject{}}};
    }
    const bool wants_ports = type == "NodePort" || type == "LoadBalancer";
    if (!wants_ports && !model::string_at(entry.after, ".spec.clusterIP").empty()) return {};
    if (wants_ports) TRY(give_node_ports(entry.context, spec));
    std::string address(model::string_at(entry.after, ".spec.clusterIP"));
    if (address.empty() && entry.before != nullptr) address = model::string_at(*entry.before, ".spec.clusterIP");
    if (address.empty()) address = TRY(entry.context.services->address(entry.context.ids));
    spec["clusterIP"] = address;
    if (!spec.contains("clusterIPs")) spec["clusterIPs"] = JsonArray{Json(address)};
    return {};
}

Status admit_job(Admission& entry) {
    if (!is_kind(entry, "batch", "jobs") || entry.before != nullptr) return {};
    const Json* manual = base::find(entry.after, {"spec", "manualSelector"});
    if (manual != nullptr && manual->is_bool() && manual->as_bool()) return {};
    const std::string uid(meta_text(entry.after, "uid")), name(meta_text(entry.after, "name"));
    JsonObject& labels = base::object_at(entry.after, {"spec", "template", "metadata", "labels"});
    for (const auto* prefix : {"batch.kubernetes.io/", ""}) {
        labels[std::string(prefix) + "controller-uid"] = uid;
        labels[std::string(prefix) + "job-name"] = name;
    }
    base::object_at(entry.after, {"spec", "selector", "matchLabels"})["batch.kubernetes.io/controller-uid"] = uid;
    return {};
}

Status admit_claim(Admission& entry) {
    if (entry.before != nullptr || brings_status(entry)) return {};
    const bool claim = is_kind(entry, "", "persistentvolumeclaims");
    if (!claim && !is_kind(entry, "", "persistentvolumes")) return {};
    entry.after.as_object()["status"] = JsonObject{{"phase", "Pending"}};
    if (!claim || base::find(entry.after, {"spec", "storageClassName"}) != nullptr) return {};
    if (const auto name = TRY(default_storage_class(entry)); !name.empty()) {
        base::object_at(entry.after, {"spec"})["storageClassName"] = name;
    }
    return {};
}

Status admit_reservation(Admission& entry) {
    if (!is_reservation(entry) || entry.before != nullptr) return {};
    if (model::string_at(entry.after, ".status.phase").empty())
        base::object_at(entry.after, {"status"})["phase"] = "Pending";
    return {};
}

Status admit_machine(Admission& entry) {
    if (entry.before != nullptr || brings_status(entry)) return {};
    if (!is_kind(entry, "compute.ironcore.dev", "machines")) return {};
    entry.after.as_object()["status"] = JsonObject{{"state", "Pending"}};
    return {};
}

Status check_rules(Admission& entry) {
    if (entry.call.subresource == "status") return {};
    const model::Kind& kind = entry.call.stored();
    auto causes = model::validate(entry.after, kind);
    if (causes.empty() && entry.before != nullptr) causes = model::validate_update(*entry.before, entry.after, kind);
    if (causes.empty()) return {};
    return invalid_entry(entry, std::move(causes));
}

// One that is broken keeps the room it holds, but nobody may break it: it is read as if it held none.
Status check_reservation(Admission& entry) {
    if (!is_reservation(entry) || entry.call.subresource == "status") return {};
    TRY(check_held(entry));
    JsonObject wanted = entry.after.as_object();
    wanted.erase("status");
    thread_local base::JsonParser parser;
    const std::string text = base::to_text(wanted);
    const auto view = TRY(parser.parse(text));
    const auto read = model::read_reservation(view);
    if (!read) return invalid_entry(entry, read.error().causes);
    if (read->ttl && read->expires) {
        entry.warnings.emplace_back("spec.ttl and spec.expires are meant to be exclusive; spec.expires decides");
    }
    return {};
}

Status check_node(Admission& entry) {
    if (!is_kind(entry, "", "nodes")) return {};
    TRY(check_sizes(entry));
    const auto key = model::kNodeReservation;
    const Json* now = base::find(entry.after, {"metadata", "annotations", key});
    const Json* old = entry.before != nullptr ? base::find(*entry.before, {"metadata", "annotations", key}) : nullptr;
    if (now == nullptr || same(now, old)) return {};
    thread_local base::JsonParser parser;
    const std::string text = base::to_text(entry.after);
    const auto view = TRY(parser.parse(text));
    const auto node = TRY(model::read_node(view));
    auto faults = model::view_of(node).faults;
    if (faults.empty()) return {};
    return invalid_entry(entry, std::move(faults));
}

}  // namespace berth::api
