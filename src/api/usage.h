#pragma once

#include "api/api_context.h"
#include "api/call.h"

// metrics.k8s.io, for kubectl top. Nothing runs on simulated nodes, so the usage shown is what running pods request.
namespace berth::api {

bool is_usage(const Call& call);
Result<Response> answer_usage(ApiContext& context, const Call& call);

}  // namespace berth::api
