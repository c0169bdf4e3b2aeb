#pragma once

#include "api/answer_source.h"
#include "api/call.h"
#include "api/desk.h"

namespace berth::api {

// 404 when there is none.
Result<store::RecordPtr> read_record(Desk& desk, const Call& call);
Result<std::unique_ptr<AnswerSource>> read_one(Desk& desk, const Call& call, const Form& form);
Result<std::unique_ptr<AnswerSource>> read_list(Desk& desk, const Call& call, const Form& form);
// Everything that the call's namespace and selectors choose, for a deletecollection.
Result<std::vector<store::RecordPtr>> select_records(Desk& desk, const Call& call);

}  // namespace berth::api
