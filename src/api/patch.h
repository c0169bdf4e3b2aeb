#pragma once

#include "api/call.h"
#include "base/json.h"

namespace berth::api {

// A patch as sent, of one of the three forms.
struct Patch {
    enum class Form : uint8_t { Json, Merge, Strategic };
    Form form = Form::Merge;
    Json document;

    // The members that it may change of a stored object of this kind; null: all.
    const JsonObject* touched(const model::Kind& kind) const;
    // Changes the object; 415 when the kind does not take this form.
    Status apply(Json& object, const model::Kind& kind) const;
};

// By the body's content type; 415 for one that is not a patch.
Result<Patch> parse_patch(const Body& body);

}  // namespace berth::api
