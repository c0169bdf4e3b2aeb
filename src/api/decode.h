#pragma once

#include "api/call.h"
#include "base/json.h"

// Bodies of requests as documents.
namespace berth::api {

struct Decoded {
    Json object;
    std::vector<std::string> warnings = {};
};

// The object of a create or update, of the call's kind (or of its subresource's): read from JSON, YAML or protobuf,
// checked against its type, without unknown fields.
Result<Decoded> decode_object(const Call& call, const model::Kind& kind);
// The same checks on an object that a patch made; `only`: on just those of its members that this has, too.
Result<Decoded> check_object(const Call& call, const model::Kind& kind, Json object, const JsonObject* only = nullptr);
// Any document, for patches and options.
Result<Json> decode_document(const Call& call, const Body& body);
// DeleteOptions, over what the query said.
Status read_delete_options(const Json& document, CallOptions& options);

}  // namespace berth::api
