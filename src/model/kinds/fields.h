#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/kinds/types.h"

// Typed documents: what Go's decoder and encoder do to an object on its way in and out of a Kubernetes API server.
namespace berth::model {

// Checks every member against the type and brings the document into the form in which Kubernetes prints it: null
// members and empty ones that are left out in print go, unknown ones go, amounts and times become canonical, plain
// structs and members that are always printed appear.
//
// A wrong JSON type or an unreadable value is BadRequest, in the words of Go's decoder. The result lists what strict
// field validation complains about, e.g. `unknown field "spec.foo"`; whether that is an error, a warning or nothing is
// the caller's choice.
//
// `only`: of the document's own members just those that it has, too; the others are known to be fine.
Result<std::vector<std::string>> check_fields(Json& document, const Type& type, const JsonObject* only = nullptr);

// The error of fieldValidation=Strict: "strict decoding error: unknown field ..., unknown field ...".
Error strict_error(const std::vector<std::string>& complaints);

// Adds the members that Go prints even when they hold nothing (see Type::sparse); nulls are not added.
void fill_zeros(JsonObject& object, const Type& type);

}  // namespace berth::model
