#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

// Reading members of a document by a simple path: ".spec.template", ".status.podIPs[0].ip". No wildcards; for those see
// jsonpath.h.
namespace berth::model {

// nullptr when something on the way is missing or of another kind. "" and "." are the document itself.
const Json* at_path(const Json& document, std::string_view path);

// The string, number or flag at a path; "", 0 and false when it is missing or something else.
std::string_view string_at(const Json& document, std::string_view path);
int64_t int_at(const Json& document, std::string_view path);
bool bool_at(const Json& document, std::string_view path);

// The list or object at a path; an empty one when it is missing or something else.
const JsonArray& list_at(const Json& document, std::string_view path);
const JsonObject& members_at(const Json& document, std::string_view path);

// A whole number however it was written; 0 for anything else.
int64_t to_int(const Json& value);

}  // namespace berth::model
