#pragma once

#include "api/write.h"

namespace berth::api {

// The subresource scale: a view of replicas, at the paths that the kind names.
void perform_scale(ApiContext& context, CallPtr call, Done done);

}  // namespace berth::api
