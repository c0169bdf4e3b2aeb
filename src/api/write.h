#pragma once

#include <memory>

#include "api/api_context.h"
#include "api/call.h"
#include "store/store.h"

// The writing verbs below HTTP. Each calls done exactly once: when refused, or when the write is durable.
namespace berth::api {

using CallPtr = std::shared_ptr<const Call>;

void create_object(ApiContext& context, CallPtr call, Done done);
void update_object(ApiContext& context, CallPtr call, Done done);
void patch_object(ApiContext& context, CallPtr call, Done done);
void delete_object(ApiContext& context, CallPtr call, Done done);
void delete_collection(ApiContext& context, CallPtr call, Done done);

// --- what they share ---

// What a write would do, composed from the head.
struct Draft {
    store::Txn txn = {};
    size_t subject = 0;  // the write whose record is answered
    int code = 200;
    bool removed = false;  // the object is gone: answer a success instead of the object
    std::vector<std::string> warnings = {};
};

// From the newest version of the object (null when there is none), the draft or why not. May be called again when
// somebody else wrote in between, so it must not keep what it made before.
using Compose = std::function<Result<Draft>(const store::RecordPtr& head)>;

// Composes and submits, again while the head moves under it; dry runs stop before the store.
void write(ApiContext& context, CallPtr call, Compose compose, Done done);

// An update of one object, or its removal when it is being deleted and its last finalizer went. `unread`: the part of
// the head that neither has.
Draft draft_update(const store::RecordPtr& head, const Json& before, Json after, std::string_view unread = {});
Draft draft_removal(const store::RecordPtr& head);
// What a delete does now: preconditions, propagation, finalizers, a pod's grace period.
Result<Draft> draft_delete(ApiContext& context, const Call& call, const store::RecordPtr& head);

// What every update must leave as it was, and what it may not change; sets generation.
Status complete_update(const Call& call, const Json& before, Json& after);
// The object after a write through its subresource "status": everything else stays.
Json with_status(const Call& call, const Json& before, Json after);

}  // namespace berth::api
