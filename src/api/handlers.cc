#include "api/handlers.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/pods.h"
#include "api/read.h"
#include "api/reviews.h"
#include "api/scale.h"

namespace berth::api {
namespace {

Error no_such_verb() {
    return {Reason::MethodNotAllowed, "the server does not allow this method on the requested resource"};
}

void get_object(ApiContext& context, const Call& call, const Done& done) {
    auto record = read_record(context, call);
    if (!record) return done(std::move(record).error());
    Served out;
    out.record = std::move(*record);
    done(std::move(out));
}

void perform_pod_part(ApiContext& context, CallPtr call, Done done) {
    if (call->subresource == "binding") return bind_pod(context, std::move(call), std::move(done));
    if (call->subresource == "eviction") return evict_pod(context, std::move(call), std::move(done));
    read_log(context, *call, done);
}

bool is_pod_part(const Call& call) {
    return call.kind->group.empty() && call.kind->plural == "pods" &&
           (call.subresource == "binding" || call.subresource == "eviction" || call.subresource == "log");
}

Error nothing_runs(const ApiContext& context) {
    return {Reason::MethodNotAllowed, context.here.simulated ? "nodes are simulated: nothing runs here"
                                                             : "this server does not connect to nodes"};
}

// exec, attach, cp (which is exec), port-forward, a proxy; and debug, which would wait for its container for ever.
bool reaches_into_pod(const ApiContext& context, const Call& call) {
    if (!call.kind->group.empty() || call.kind->plural != "pods") return false;
    const std::string& part = call.subresource;
    if (part == "exec" || part == "attach" || part == "portforward" || part == "proxy") return true;
    return part == "ephemeralcontainers" && call.verb != Verb::Get && context.here.simulated;
}

}  // namespace

Call make_call(const ApiContext& context, Identity who, Verb verb, const ResourceName& resource, std::string ns,
               std::string name, Body body) {
    Call out;
    out.who = std::move(who);
    out.verb = verb;
    out.table = context.kinds();
    out.kind = out.table->find(resource.group, resource.version, resource.plural);
    CHECK(out.kind != nullptr);
    out.ns = std::move(ns);
    out.name = std::move(name);
    out.body = std::move(body);
    return out;
}

Status check_verb(const ApiContext& context, const Call& call) {
    const auto verb = name_of(call.verb);
    if (call.subresource.empty()) {
        if (!call.kind->allows(verb)) return no_such_verb();
        // A create in all namespaces at once, or of an object that has a name already.
        if (call.verb == Verb::Create && (!call.name.empty() || (call.kind->namespaced && call.ns.empty()))) {
            return no_such_verb();
        }
        return {};
    }
    if (reaches_into_pod(context, call)) return nothing_runs(context);
    const model::Subresource* part = call.kind->subresource(call.subresource);
    if (part == nullptr) return base::not_found("the server could not find the requested resource");
    if (std::find(part->verbs.begin(), part->verbs.end(), verb) == part->verbs.end()) return no_such_verb();
    return {};
}

void perform(ApiContext& context, CallPtr call, Done done) {
    if (is_pod_part(*call)) return perform_pod_part(context, std::move(call), std::move(done));
    if (call->subresource == "scale") return perform_scale(context, std::move(call), std::move(done));
    if (call->subresource == "token") {
        return done(Error{Reason::MethodNotAllowed, "this server does not issue service account tokens"});
    }
    if (is_review(*call)) return answer_review(context, *call, done);
    if (call->kind->group.empty() && call->kind->plural == "bindings") {
        return bind_pod(context, std::move(call), std::move(done));
    }
    switch (call->verb) {
        case Verb::Get:
            return get_object(context, *call, done);
        case Verb::Create:
            return create_object(context, std::move(call), std::move(done));
        case Verb::Update:
            return update_object(context, std::move(call), std::move(done));
        case Verb::Patch:
            return patch_object(context, std::move(call), std::move(done));
        case Verb::Delete:
            return delete_object(context, std::move(call), std::move(done));
        case Verb::DeleteCollection:
            return delete_collection(context, std::move(call), std::move(done));
        case Verb::List:
        case Verb::Watch:
            break;
    }
    done(no_such_verb());
}

}  // namespace berth::api
