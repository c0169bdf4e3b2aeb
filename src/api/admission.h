#pragma once

#include "api/api_context.h"
#include "api/call.h"
#include "base/json.h"

namespace berth::api {

// A write on its way in. `before` is null for a create. Objects are in their stored form.
struct Admission {
    ApiContext& context;
    const Call& call;
    const Json* before;
    Json& after;
    std::vector<std::string>& warnings;
};

// Everything that changes or refuses an object between its defaults and the store, in the order of the list in
// admission.cc.
Status admit(Admission& entry);

}  // namespace berth::api
