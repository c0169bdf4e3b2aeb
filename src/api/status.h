#pragma once

#include <string>
#include <string_view>

#include "api/http.h"
#include "base/json.h"
#include "base/result.h"

// Errors as clients see them: Kubernetes' Status objects.
namespace berth::api {

// What a Status says about its object.
struct Subject {
    std::string_view group;
    std::string_view kind;  // the plural name for most errors, the Kind for Invalid
    std::string name;
    std::string_view uid = {};
};

Json status_json(const Error& error, const Subject& subject = {});
// {"status":"Success"} for a finished delete.
Json success_json(const Subject& subject);
// Headers for the client's person. Kubernetes' rule for many: from 4,096 characters on, the first 256 of each until
// they are told.
void add_warnings(const std::vector<std::string>& warnings, Response& response);
Response error_response(const Error& error, const Subject& subject = {});
Response json_response(int code, std::string body);
Response text_response(int code, std::string body);

// "pods" or "deployments.apps", as error sentences name a resource.
std::string qualified(std::string_view group, std::string_view plural);

Error forbidden(std::string message);
Error unsupported_media(std::string message);
// A field of an Invalid object.
base::Cause invalid_value(std::string field, std::string_view value, std::string_view why);
base::Cause required_value(std::string field, std::string_view why = {});
base::Cause forbidden_value(std::string field, std::string_view why);
// `Pod "web" is invalid: spec.x: Invalid value: ...`
Error invalid_object(std::string_view group, std::string_view kind, std::string_view name,
                     std::vector<base::Cause> causes);

}  // namespace berth::api
