#include "api/status.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clipped.h"
#include "base/escape.h"

namespace berth::api {
namespace {

// An answer repeats of what was sent so much and no more: a cause has at most a value, a name and our words.
constexpr size_t kMostOfACause = 3 * base::kMostRepeated;
constexpr size_t kMostOfAMessage = 16u << 10;
constexpr size_t kMostCauses = 100;  // and one that says how many more there are

constexpr size_t kMostOfWarnings = 4096;  // in characters
constexpr size_t kMostOfAWarning = 256;

bool begins_character(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

size_t characters(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string_view first_characters(std::string_view text, size_t count) {
    size_t at = 0;
    for (size_t seen = 0; at < text.size(); ++at) {
        if (begins_character(text[at]) && ++seen > count) break;
    }
    return text.substr(0, at);
}

// What is repeated neither ends the line nor moves the reader's cursor.
std::string one_line(std::string text, size_t most) {
    return base::one_line(base::clipped(std::move(text), most));
}

std::string quoted_warning(std::string_view text) {
    std::string out = "299 - \"";
    for (const char c : base::one_line(std::string(text))) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

}  // namespace

Json status_json(const Error& error, const Subject& subject) {
    JsonObject details;
    if (!subject.name.empty()) details["name"] = one_line(subject.name, base::kMostRepeated);
    if (!subject.group.empty()) details["group"] = subject.group;
    if (!subject.kind.empty()) details["kind"] = subject.kind;
    if (!subject.uid.empty()) details["uid"] = subject.uid;
    if (!error.causes.empty()) {
        JsonArray causes;
        for (const auto& cause : error.causes) {
            JsonObject row;
            if (!cause.reason.empty()) row["reason"] = cause.reason;
            row["message"] = one_line(cause.message, kMostOfACause);
            if (!cause.field.empty()) row["field"] = one_line(cause.field, kMostOfACause);
            causes.emplace_back(std::move(row));
        }
        details["causes"] = std::move(causes);
    }
    if (error.retry_after_s > 0) details["retryAfterSeconds"] = error.retry_after_s;
    JsonObject out{{"kind", "Status"},
                   {"apiVersion", "v1"},
                   {"metadata", JsonObject{}},
                   {"status", "Failure"},
                   {"message", one_line(error.message, kMostOfAMessage)},
                   {"reason", base::name_of(error.reason)}};
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

void add_warnings(const std::vector<std::string>& warnings, Response& response) {
    size_t total = 0;
    for (const auto& warning : warnings) total += characters(warning);
    const bool shortened = total > kMostOfWarnings;
    size_t told = 0;
    for (const auto& warning : warnings) {
        if (shortened && told >= kMostOfWarnings) return;
        const auto text = shortened ? first_characters(warning, kMostOfAWarning) : std::string_view(warning);
        told += characters(text);
        response.headers.emplace_back("Warning", quoted_warning(text));
    }
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
    if (causes.size() > kMostCauses + 1) {
        const auto untold = causes.size() - kMostCauses;
        causes.resize(kMostCauses);
        causes.push_back({"", fmt::format("too many errors, {} more are not listed", untold), ""});
    }
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
