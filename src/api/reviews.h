#pragma once

#include "api/api_context.h"
#include "api/call.h"

// The kinds that are questions: who am I, may I, whose token is this. Nothing is stored.
namespace berth::api {

bool is_review(const Call& call);
void answer_review(ApiContext& context, const Call& call, const Done& done);

}  // namespace berth::api
