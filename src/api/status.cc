#include "api/status.h"

#include <fmt/format.h>

namespace berth::api {

Json status_json(const Error& error, const Subject& subject) {
    JsonObject details;
    if (!subject.name.empty()) details["name"] = subject.name;
    if (!subject.group.empty()) details["group"] = subject.group;
    if (!subject.kind.empty()) details["kind"] = subject.kind;
    if (!subject.uid.empty()) details["uid"] = subject.uid;
    if (!error.causes.empty()) {
        JsonArray causes;
        for (const auto& cause : error.causes) {
            JsonObject row;
            if (!cause.reason.empty()) row["reason"] = cause.reason;
            row["message"] = cause.message;
            if (!cause.field.empty()) row["field"] = cause.field;
            causes.emplace_back(std::move(row));
        }
        details["causes"] = std::move(causes);
    }
    if (error.retry_after_s > 0) details["retryAfterSeconds"] = error.retry_after_s;
    JsonObject out{{"kind", "Status"},    {"apiVersion", "v1"},       {"metadata", JsonObject{}},
                   {"status", "Failure"}, {"message", error.message}, {"reason", base::name_of(error.reason)}};
    if (!details.empty()) out["details"] = std::move(details);
    out["code"] = base::http_code(error.reason);
    return out;
}

Json success_json(const Subject& subject) {
    JsonObject details{{"name", subject.name}};
    if (!subject.group.empty()) details["group"] = subject.group;
    details["kind"] = subject.kind;
    details["uid"] = subject.uid;
    return JsonObject{{"kind", "Status"},
                      {"apiVersion", "v1"},
                      {"metadata", JsonObject{}},
                      {"status", "Success"},
                      {"details", std::move(details)}};
}

Response json_response(int code, std::string body) {
    Response out;
    out.status = code;
    out.body = std::move(body);
    return out;
}

Response text_response(int code, std::string body) {
    Response out;
    out.status = code;
    out.content_type = "text/plain; charset=utf-8";
    out.body = std::move(body);
    return out;
}

Response error_response(const Error& error, const Subject& subject) {
    Response out = json_response(base::http_code(error.reason), base::to_text(status_json(error, subject)) + "\n");
    if (error.retry_after_s > 0) out.headers.emplace_back("Retry-After", std::to_string(error.retry_after_s));
    return out;
}

std::string qualified(std::string_view group, std::string_view plural) {
    return group.empty() ? std::string(plural) : fmt::format("{}.{}", plural, group);
}

Error forbidden(std::string message) {
    return {Reason::Forbidden, std::move(message)};
}

Error unsupported_media(std::string message) {
    return {Reason::UnsupportedMediaType, std::move(message)};
}

base::Cause invalid_value(std::string field, std::string_view value, std::string_view why) {
    std::string quoted;
    base::append_quoted(value, quoted);
    return {"FieldValueInvalid", fmt::format("Invalid value: {}: {}", quoted, why), std::move(field)};
}

base::Cause required_value(std::string field, std::string_view why) {
    return {"FieldValueRequired", why.empty() ? "Required value" : fmt::format("Required value: {}", why),
            std::move(field)};
}

base::Cause forbidden_value(std::string field, std::string_view why) {
    return {"FieldValueForbidden", fmt::format("Forbidden: {}", why), std::move(field)};
}

Error invalid_object(std::string_view group, std::string_view kind, std::string_view name,
                     std::vector<base::Cause> causes) {
    std::string list;
    for (const auto& cause : causes) {
        if (!list.empty()) list += ", ";
        list += cause.field.empty() ? cause.message : fmt::format("{}: {}", cause.field, cause.message);
    }
    if (causes.size() > 1) list = "[" + list + "]";
    return {Reason::Invalid, fmt::format("{} \"{}\" is invalid: {}", qualified(group, kind), name, list),
            std::move(causes)};
}

}  // namespace berth::api
