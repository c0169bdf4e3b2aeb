#pragma once

#include "api/answer_source.h"
#include "api/api_context.h"
#include "api/call.h"

namespace berth::api {

// 404 when there is none.
Result<store::RecordPtr> read_record(ApiContext& context, const Call& call);
Result<std::unique_ptr<AnswerSource>> read_one(ApiContext& context, const Call& call, const Form& form);
Result<std::unique_ptr<AnswerSource>> read_list(ApiContext& context, const Call& call, const Form& form);
// Everything that the call's namespace and selectors choose, for a deletecollection.
Result<std::vector<store::RecordPtr>> select_records(ApiContext& context, const Call& call);

}  // namespace berth::api
