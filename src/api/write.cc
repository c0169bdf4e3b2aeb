#include "api/write.h"

#include <fmt/format.h>

#include "api/audit.h"
#include "api/authz.h"
#include "api/node_rules.h"
#include "api/wire.h"

namespace berth::api {
namespace {

constexpr int kTries = 32;

Served finish(const Call& call, const Draft& draft, const store::RecordPtr& record) {
    Served out;
    out.code = draft.code;
    out.warnings = draft.warnings;
    if (draft.removed) {
        const Subject subject{call.kind->group, call.kind->plural, record->key.name, record->uid};
        out.text = base::to_text(success_json(subject)) + "\n";
    }
    out.record = record;
    return out;
}

// The record a dry run would have stored. Its version is the present one, as Kubernetes answers.
store::RecordPtr imagine(const store::Write& write, const store::RecordPtr& head) {
    auto record = head != nullptr ? std::make_shared<store::Record>(*head) : std::make_shared<store::Record>();
    record->key = write.key;
    if (write.bytes != nullptr) record->bytes = write.bytes;
    if (!write.uid.empty()) record->uid = write.uid;
    return record;
}

// The store's words say what happened to which key; clients expect Kubernetes' sentences about the object.
Error worded(const Call& call, const store::Write& write, const Error& error) {
    switch (error.reason) {
        case Reason::AlreadyExists:
            return already_exists_error(call.resource(), write.key.name);
        case Reason::NotFound:
            if (write.op == store::Op::Create) return not_found_error("namespaces", write.key.ns);
            return not_found_error(call.resource(), write.key.name);
        case Reason::Conflict: {
            if (error.message.starts_with("Operation")) return error;
            const auto what = call.subresource.empty() ? call.resource() : call.resource() + "/" + call.subresource;
            Error out = error;
            out.message =
                fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", what, write.key.name, error.message);
            return out;
        }
        default:
            return error;
    }
}

// Somebody else wrote one of the objects between our look and our write.
bool overtaken(const ApiContext& context, const store::Txn& txn) {
    for (const auto& write : txn.writes) {
        if (!write.if_revision) continue;
        const auto head = context.store.head(write.key);
        if (head == nullptr || head->revision != *write.if_revision) return true;
    }
    return false;
}

bool generated(const Call& call) {
    return call.verb == Verb::Create && call.name.empty();
}

struct Attempt {
    ApiContext& context;
    CallPtr call;
    Compose compose;
    Done done;
    int tries = kTries;
};

// Of the documents only the draft's texts remain.
Result<Draft> compose_in_scope(const Attempt& state, const store::RecordPtr& head) {
    __attribute__((uninitialized)) const base::JsonScope documents;
    return state.compose(head);
}

void attempt(std::shared_ptr<Attempt> state) {
    ApiContext& context = state->context;
    const Call& call = *state->call;
    const bool creates = call.verb == Verb::Create && call.subresource.empty();
    const auto head = creates ? nullptr : context.store.head(call.key());
    if (!node_may_write(call.who, attributes_of(call), head)) {
        return state->done(forbidden(refusal(call.who, attributes_of(call))));
    }
    auto composed = compose_in_scope(*state, head);
    if (!composed) return state->done(std::move(composed).error());
    auto draft = std::make_shared<Draft>(std::move(*composed));
    const store::Write& write = draft->txn.writes[draft->subject];
    if (call.options.dry_run) {
        if (creates && context.store.head(write.key) != nullptr) {
            return state->done(already_exists_error(call.resource(), write.key.name));
        }
        return state->done(finish(call, *draft, imagine(write, head)));
    }
    context.store.submit(draft->txn, [state, draft](Result<store::Commit> result) {
        const Call& asked = *state->call;
        const store::Write& subject = draft->txn.writes[draft->subject];
        if (result) {
            if (asked.trail) asked.trail->add(result->revision);
            return state->done(finish(asked, *draft, result->records[draft->subject]));
        }
        const Reason reason = result.error().reason;
        const bool taken = reason == Reason::AlreadyExists && generated(asked);
        const bool raced = reason == Reason::Conflict && overtaken(state->context, draft->txn);
        if ((taken || raced) && --state->tries > 0) return attempt(state);
        if (raced) return state->done(modified_error(asked.resource(), subject.key.name));
        state->done(worded(asked, subject, result.error()));
    });
}

}  // namespace

void write(ApiContext& context, CallPtr call, Compose compose, Done done) {
    attempt(std::make_shared<Attempt>(Attempt{context, std::move(call), std::move(compose), std::move(done)}));
}

Draft draft_removal(const store::RecordPtr& head) {
    Draft out;
    store::Write write;
    write.op = store::Op::Delete;
    write.key = head->key;
    write.if_revision = head->revision;
    out.txn.writes.push_back(std::move(write));
    out.removed = true;
    return out;
}

namespace {

bool ready_to_go(const Json& object) {
    const Json* deleted = base::find(object, {"metadata", "deletionTimestamp"});
    if (deleted == nullptr) return false;
    const Json* finalizers = base::find(object, {"metadata", "finalizers"});
    if (finalizers != nullptr && finalizers->is_array() && !finalizers->as_array().empty()) return false;
    const Json* grace = base::find(object, {"metadata", "deletionGracePeriodSeconds"});
    if (grace != nullptr && grace->is_int64() && grace->as_int64() > 0) return false;
    if (base::find_string(object, {"kind"}) != "Namespace") return true;
    const Json* holds = base::find(object, {"spec", "finalizers"});
    return holds == nullptr || !holds->is_array() || holds->as_array().empty();
}

// What changes most often is looked at first.
bool same_object(const Json& before, const Json& after) {
    const Json* old_status = before.as_object().if_contains("status");
    const Json* new_status = after.as_object().if_contains("status");
    if (old_status != nullptr && new_status != nullptr && *old_status != *new_status) return false;
    return before == after;
}

}  // namespace

Draft draft_update(const store::RecordPtr& head, const Json& before, Json after, std::string_view unread) {
    if (ready_to_go(after)) {
        Draft out = draft_removal(head);
        out.removed = false;
        return out;
    }
    Draft out;
    store::Write write;
    write.op = store::Op::Update;
    write.key = head->key;
    write.if_revision = head->revision;
    // The same object in another order of keys is the same object: no new version, no event.
    write.bytes = same_object(before, after) ? head->bytes : stored_bytes(after, unread);
    out.txn.writes.push_back(std::move(write));
    return out;
}

}  // namespace berth::api
