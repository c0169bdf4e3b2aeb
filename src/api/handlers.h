#pragma once

#include "api/api_context.h"
#include "api/call.h"
#include "api/write.h"

namespace berth::api {

// The verb of a call that was let in: get and the writing verbs, subresources included. Below HTTP, after
// authentication and authorization; everything else (defaults, admission, the guard) happens here.
void perform(ApiContext& context, CallPtr call, Done done);

// A resource by the words of its URL.
struct ResourceName {
    std::string_view group;  // "" is core
    std::string_view version;
    std::string_view plural;
};
// A call of a component in this process, for Front::call(). The kind must be in the table. Body: JSON, or a patch with
// its content type ("application/merge-patch+json").
Call make_call(const ApiContext& context, Identity who, Verb verb, const ResourceName& resource, std::string ns,
               std::string name, Body body = {});

// 404 or 405 when the kind or its subresource does not have the verb.
Status check_verb(const ApiContext& context, const Call& call);

}  // namespace berth::api
