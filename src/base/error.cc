#include "base/error.h"

#include <array>

namespace berth::base {
namespace {

struct ReasonRow {
    std::string_view name;
    int code;
};

constexpr std::array<ReasonRow, 18> kReasons{{
    {"BadRequest", 400},
    {"Unauthorized", 401},
    {"Forbidden", 403},
    {"NotFound", 404},
    {"MethodNotAllowed", 405},
    {"NotAcceptable", 406},
    {"AlreadyExists", 409},
    {"Conflict", 409},
    {"Gone", 410},
    {"Expired", 410},
    {"Invalid", 422},
    {"RequestEntityTooLarge", 413},
    {"UnsupportedMediaType", 415},
    {"TooManyRequests", 429},
    {"InternalError", 500},
    {"ServiceUnavailable", 503},
    {"Timeout", 504},
    {"ServerTimeout", 500},
}};

}  // namespace

std::string_view name_of(Reason reason) {
    return kReasons[static_cast<size_t>(reason)].name;
}

int http_code(Reason reason) {
    return kReasons[static_cast<size_t>(reason)].code;
}

}  // namespace berth::base
