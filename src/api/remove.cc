#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "api/meta.h"
#include "api/read.h"
#include "api/versions.h"
#include "api/wire.h"
#include "api/write.h"
#include "model/times.h"

namespace berth::api {
namespace {

constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::string_view kOrphan = "orphan";

bool is_core(const Call& call, std::string_view plural) {
    return call.kind->group.empty() && call.kind->plural == plural;
}

Status check_preconditions(const Call& call, const store::Record& head) {
    const auto failed = [&](std::string_view what, std::string_view wanted, std::string_view found) {
        return base::conflict(
            fmt::format("Operation cannot be fulfilled on {} \"{}\": Precondition failed: {} in precondition: {}, {} "
                        "in object meta: {}",
                        call.resource(), call.name, what, wanted, what, found));
    };
    if (!call.options.if_uid.empty() && call.options.if_uid != head.uid) {
        return failed("UID", call.options.if_uid, head.uid);
    }
    const auto version = std::to_string(head.revision);
    if (!call.options.if_version.empty() && call.options.if_version != version) {
        return failed("ResourceVersion", call.options.if_version, version);
    }
    return {};
}

// How long a pod may take to go. One that runs nowhere goes at once.
int64_t pod_grace(const Call& call, const Json& pod) {
    const auto phase = base::find_string(pod, {"status", "phase"});
    if (base::find_string(pod, {"spec", "nodeName"}).empty() || phase == "Succeeded" || phase == "Failed") return 0;
    if (call.options.grace_seconds) return std::max<int64_t>(0, *call.options.grace_seconds);
    const Json* own = base::find(pod, {"spec", "terminationGracePeriodSeconds"});
    return own != nullptr && own->is_int64() ? std::max<int64_t>(0, own->as_int64()) : 30;
}

// The finalizers that the propagation policy asks for, in place of those of an earlier delete.
void set_propagation(const CallOptions& options, JsonObject& meta) {
    std::string policy = options.propagation;
    if (policy.empty() && options.orphan) policy = *options.orphan ? "Orphan" : "Background";
    if (policy.empty()) return;
    JsonArray kept;
    if (const Json* old = meta.if_contains("finalizers"); old != nullptr && old->is_array()) {
        for (const auto& finalizer : old->as_array()) {
            const std::string_view name = finalizer.is_string() ? std::string_view(finalizer.as_string()) : "";
            if (name != kForeground && name != kOrphan) kept.push_back(finalizer);
        }
    }
    if (policy == "Foreground") kept.emplace_back(kForeground);
    if (policy == "Orphan") kept.emplace_back(kOrphan);
    if (kept.empty())
        meta.erase("finalizers");
    else
        meta["finalizers"] = std::move(kept);
}

bool held(const Call& call, const Json& object) {
    const auto any = [](const Json* list) { return list != nullptr && list->is_array() && !list->as_array().empty(); };
    if (any(base::find(object, {"metadata", "finalizers"}))) return true;
    return is_core(call, "namespaces") && any(base::find(object, {"spec", "finalizers"}));
}

// Marks the object as being deleted. A grace period may be shortened by a later delete, never lengthened.
void mark(ApiContext& context, const Call& call, Json& object, int64_t grace) {
    JsonObject& meta = meta_of(object);
    const Json* earlier = meta.if_contains("deletionGracePeriodSeconds");
    const bool marked = meta.contains("deletionTimestamp");
    if (marked && earlier != nullptr && earlier->is_int64() && earlier->as_int64() <= grace) return;
    meta["deletionTimestamp"] = model::time_text(context.clock.wall() + std::chrono::seconds(grace));
    meta["deletionGracePeriodSeconds"] = grace;
    if (const Json* generation = meta.if_contains("generation");
        !marked && generation != nullptr && generation->is_int64()) {
        meta["generation"] = generation->as_int64() + 1;
    }
    if (is_core(call, "namespaces")) base::object_at(object, {"status"})["phase"] = "Terminating";
}

Status check_policy(const CallOptions& options) {
    const auto& policy = options.propagation;
    if (policy.empty() || policy == "Background" || policy == "Foreground" || policy == "Orphan") {
        if (policy.empty() || !options.orphan) return {};
        return invalid_object("meta.k8s.io", "DeleteOptions", "",
                              {invalid_value("propagationPolicy", policy,
                                             "orphanDependents and deletionPropagation cannot be both set")});
    }
    return invalid_object(
        "meta.k8s.io", "DeleteOptions", "",
        {invalid_value("propagationPolicy", policy, "must be one of \"Background\", \"Foreground\", \"Orphan\"")});
}

Status check_protected(const Call& call) {
    static constexpr std::array<std::string_view, 3> kKept{"default", "kube-system", "kube-public"};
    if (!is_core(call, "namespaces") || std::find(kKept.begin(), kKept.end(), call.name) == kKept.end()) return {};
    return forbidden(fmt::format("namespaces \"{}\" is forbidden: this namespace may not be deleted", call.name));
}

// All at once, so that they share the log's batches; an object that is gone already is no trouble.
struct Sweep {
    Sweep(ApiContext& the_desk, CallPtr the_call, std::vector<store::RecordPtr> the_records, Done the_done)
        : context(the_desk), call(std::move(the_call)), records(std::move(the_records)), done(std::move(the_done)) {}
    ApiContext& context;
    CallPtr call;
    std::vector<store::RecordPtr> records;
    Done done;
    std::mutex mutex = {};
    size_t left = 0;
    std::optional<Error> trouble = {};
};

Served swept(const Sweep& sweep) {
    const model::Kind& kind = *sweep.call->kind;
    Served out;
    out.text =
        fmt::format("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{{\"resourceVersion\":\"{}\"}},\"items\":[",
                    kind.list_kind, kind.api_version(), sweep.context.store.revision());
    for (size_t i = 0; i < sweep.records.size(); ++i) {
        if (i > 0) out.text += ',';
        append_view(kind, *sweep.records[i], out.text);
    }
    out.text += "]}\n";
    return out;
}

void one_swept(const std::shared_ptr<Sweep>& sweep, const Result<Served>& result) {
    {
        const std::lock_guard lock(sweep->mutex);
        const bool gone =
            !result && (result.error().reason == Reason::NotFound || result.error().reason == Reason::Conflict);
        if (!result && !gone) sweep->trouble = result.error();
        if (--sweep->left > 0) return;
    }
    if (sweep->trouble) return sweep->done(*sweep->trouble);
    sweep->done(swept(*sweep));
}

CallPtr delete_of(const Call& call, const store::Record& record) {
    auto one = std::make_shared<Call>(call);
    one->verb = Verb::Delete;
    one->ns = record.key.ns;
    one->name = record.key.name;
    one->options.if_uid = record.uid;
    return one;
}

}  // namespace

Result<Draft> draft_delete(ApiContext& context, const Call& call, const store::RecordPtr& head) {
    if (head == nullptr) return not_found_error(call.resource(), call.name);
    if (auto fits = check_preconditions(call, *head); !fits) return fits.error();
    const Json before = TRY(stored_object(*head));
    Json after = before;
    set_propagation(call.options, meta_of(after));
    const int64_t grace = is_core(call, "pods") ? pod_grace(call, before) : 0;
    if (grace == 0 && !held(call, after)) return draft_removal(head);
    mark(context, call, after, grace);
    return draft_update(head, before, std::move(after));
}

void delete_object(ApiContext& context, CallPtr call, Done done) {
    if (auto known = check_policy(call->options); !known) return done(known.error());
    if (auto allowed = check_protected(*call); !allowed) return done(allowed.error());
    write(
        context, call, [&context, call](const store::RecordPtr& head) { return draft_delete(context, *call, head); },
        std::move(done));
}

void delete_collection(ApiContext& context, CallPtr call, Done done) {
    auto records = select_records(context, *call);
    if (!records) return done(std::move(records).error());
    auto sweep = std::make_shared<Sweep>(context, call, std::move(*records), std::move(done));
    // One more than there are, so that the end is not reached while we still start.
    sweep->left = sweep->records.size() + 1;
    for (const auto& record : sweep->records) {
        delete_object(context, delete_of(*call, *record),
                      [sweep](const Result<Served>& result) { one_swept(sweep, result); });
    }
    one_swept(sweep, Served{});
}

}  // namespace berth::api
