#pragma once

#include "api/call.h"
#include "api/desk.h"
#include "api/write.h"

namespace berth::api {

// The verb of a call that was let in: get and the writing verbs, subresources included. Below HTTP, after
// authentication and authorization; everything else (defaults, admission, the guard) happens here.
void perform(Desk& desk, CallPtr call, Done done);

// 404 or 405 when the kind or its subresource does not have the verb.
Status check_verb(const Call& call);

}  // namespace berth::api
