#include <fmt/format.h>

#include "api/decode.h"
#include "api/meta.h"
#include "api/pods.h"
#include "api/wire.h"
#include "base/json_view.h"
#include "base/mentions.h"
#include "model/allocated.h"
#include "model/reservation_rules.h"
#include "model/reservation_status.h"

namespace berth::api {
namespace {

constexpr std::string_view kReservations = "scheduling.koordinator.sh/reservations";

struct Binding {
    std::string pod;
    std::string uid;
    std::string node;
    JsonObject annotations;
};

Result<Binding> read_binding(const Call& call) {
    const model::Kind* kind = call.table->find("", "v1", "bindings");
    CHECK(kind != nullptr);
    __attribute__((uninitialized)) const base::JsonScope documents;
    const Decoded decoded = TRY(decode_object(call, *kind));
    const Json& body = decoded.object;
    Binding out;
    out.pod = call.subresource.empty() ? std::string(meta_text(body, "name")) : call.name;
    if (const auto name = meta_text(body, "name"); !name.empty() && name != out.pod) {
        return base::bad_request(
            fmt::format("the name of the binding ({}) does not match the pod ({})", name, out.pod));
    }
    if (const auto ns = meta_text(body, "namespace"); !ns.empty() && ns != call.ns) {
        return base::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request");
    }
    out.uid = std::string(meta_text(body, "uid"));
    out.node = std::string(base::find_string(body, {"target", "name"}));
    if (const Json* annotations = base::find(body, {"metadata", "annotations"});
        annotations != nullptr && annotations->is_object()) {
        out.annotations = annotations->as_object();
    }
    std::vector<base::Cause> causes;
    const auto target = base::find_string(body, {"target", "kind"});
    if (!target.empty() && target != "Node") {
        causes.push_back({"FieldValueNotSupported",
                          fmt::format("Unsupported value: \"{}\": supported values: \"Node\"", target), "target.kind"});
    }
    if (out.node.empty()) causes.push_back(required_value("target.name"));
    if (!causes.empty()) return invalid_object("", "Binding", out.pod, std::move(causes));
    return out;
}

// The link to a reservation is the scheduler's to write, with a binding too.
Status check_links(const Call& call, const Binding& binding) {
    if (call.who.in(kSchedulers)) return {};
    for (const auto key : model::kPlacementAnnotations) {
        if (!binding.annotations.contains(key)) continue;
        return forbidden(fmt::format(
            "pods \"{}\" is forbidden: only the scheduler may set or change the annotation {}, not User \"{}\"",
            binding.pod, key, call.who.user));
    }
    return {};
}

Error cannot_bind(const std::string& pod, std::string_view why) {
    return base::conflict(fmt::format("Operation cannot be fulfilled on pods/binding \"{}\": {}", pod, why));
}

Status check_unbound(const Binding& binding, const Json& pod, const store::Record& head) {
    if (!binding.uid.empty() && binding.uid != head.uid) {
        return cannot_bind(
            binding.pod,
            fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}", binding.uid, head.uid));
    }
    if (is_deleting(pod))
        return cannot_bind(binding.pod,
                           fmt::format("pod {} is being deleted, cannot be assigned to a host", binding.pod));
    if (const auto node = base::find_string(pod, {"spec", "nodeName"}); !node.empty()) {
        return cannot_bind(binding.pod, fmt::format("pod {} is already assigned to node \"{}\"", binding.pod, node));
    }
    const Json* gates = base::find(pod, {"spec", "schedulingGates"});
    if (gates != nullptr && gates->is_array() && !gates->as_array().empty()) {
        return cannot_bind(binding.pod, fmt::format("pod {} has non-empty .spec.schedulingGates", binding.pod));
    }
    return {};
}

void set_scheduled(Json& pod, const std::string& now) {
    JsonObject& status = base::object_at(pod, {"status"});
    const auto memory = status.storage();
    JsonArray kept(memory);
    if (const Json* old = status.if_contains("conditions"); old != nullptr && old->is_array()) {
        for (const auto& condition : old->as_array()) {
            if (base::find_string(condition, {"type"}) != "PodScheduled") kept.push_back(condition);
        }
    }
    kept.emplace_back(JsonObject(
        {{"type", "PodScheduled"}, {"status", "True"}, {"lastProbeTime", nullptr}, {"lastTransitionTime", now}},
        memory));
    status["conditions"] = std::move(kept);
    status.erase("nominatedNodeName");
}

// With its owner an allocateOnce reservation has done its work: it ends in the same transaction, so that nobody can use
// it a second time, whatever happens next. Whether the pod may draw from it is the guard's to say.
Status end_reservations(ApiContext& context, const Binding& binding, const store::Record& pod, store::Txn& txn) {
    std::vector<model::Labels::Entry> entries;
    for (const auto& [key, value] : binding.annotations) {
        if (value.is_string()) entries.emplace_back(key, value.as_string());
    }
    const auto links = model::read_links(model::Labels(std::move(entries)));
    if (!links || links->empty()) return {};
    for (const auto& [name, uid] : links->named()) {
        const auto head = context.store.head({std::string(kReservations), "", name});
        if (head == nullptr || head->uid != uid) continue;
        base::JsonParser parser;
        const auto reservation = model::read_reservation(TRY(parser.parse(*head->bytes)));
        if (!reservation || !reservation->allocate_once || !model::holds_room(*reservation)) continue;
        model::ReservationStatus status = model::ended_by_bind(*reservation, context.clock.wall());
        status.current_owners = {{pod.key.ns, pod.key.name, pod.uid}};
        Json object = TRY(stored_object(*head));
        object.as_object()["status"] = model::status_document(status);
        store::Write write;
        write.op = store::Op::Update;
        write.key = head->key;
        write.if_revision = head->revision;
        write.bytes = stored_bytes(object);
        txn.writes.push_back(std::move(write));
    }
    return {};
}

// Most specs say nothing of nodes or gates, and need not be read for the node to be added.
bool can_stay_unread(std::string_view spec) {
    return spec.starts_with(",\"spec\":{") && spec.ends_with('}') && !spec.ends_with("{}") &&
           !base::mentions(spec, "\"nodeName\"") && !base::mentions(spec, "\"schedulingGates\"");
}

Result<Draft> compose_binding(ApiContext& context, const Binding& binding, const store::RecordPtr& head) {
    if (head == nullptr) return not_found_error("pods", binding.pod);
    PartlyRead read = TRY(stored_ends(*head));
    const bool unread = can_stay_unread(read.unread);
    Json pod = unread ? std::move(read.object) : TRY(stored_object(*head));
    if (auto free = check_unbound(binding, pod, *head); !free) return free.error();
    const store::Key node{"nodes", "", binding.node};
    if (context.store.head(node) == nullptr) {
        return cannot_bind(binding.pod, fmt::format("there is no node \"{}\"", binding.node));
    }
    std::string spec;
    if (unread) {
        spec.append(read.unread.substr(0, read.unread.size() - 1)).append(",\"nodeName\":");
        base::append_quoted(binding.node, spec);
        spec += '}';
    } else {
        base::object_at(pod, {"spec"})["nodeName"] = binding.node;
    }
    if (!binding.annotations.empty()) {
        JsonObject& annotations = base::object_at(pod, {"metadata", "annotations"});
        for (const auto& [key, value] : binding.annotations) annotations[key] = value;
    }
    set_scheduled(pod, context.now_text());
    // It was not bound, so it is another object now: there is nothing to compare.
    Draft out;
    out.code = 201;
    out.txn.writes.resize(2);
    store::Write& write = out.txn.writes[0];
    write.op = store::Op::Update;
    write.key = head->key;
    write.if_revision = head->revision;
    write.bytes = stored_bytes(pod, spec);
    store::Write& exists = out.txn.writes[1];
    exists.op = store::Op::Check;
    exists.key = node;
    TRY(end_reservations(context, binding, *head, out.txn));
    return out;
}

}  // namespace

void bind_pod(ApiContext& context, CallPtr call, Done done) {
    auto binding = read_binding(*call);
    if (!binding) return done(std::move(binding).error());
    if (auto links = check_links(*call, *binding); !links) return done(std::move(links).error());
    auto pod = std::make_shared<Call>(*call);
    pod->kind = call->table->find("", "v1", "pods");
    pod->subresource = "binding";
    pod->name = binding->pod;
    write(
        context, pod,
        [&context, binding = std::move(*binding)](const store::RecordPtr& head) {
            return compose_binding(context, binding, head);
        },
        [done = std::move(done)](Result<Served> result) {
            if (result) {
                result->text =
                    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"code\":201}\n";
            }
            done(std::move(result));
        });
}

}  // namespace berth::api
