#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::base {

// Kubernetes' reasons for a refused request. Each has one HTTP code.
enum class Reason : uint8_t {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    Gone,
    Expired,
    Invalid,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    TooManyRequests,
    InternalError,
    ServiceUnavailable,
    Timeout,
    ServerTimeout,
};

std::string_view name_of(Reason);
int http_code(Reason);

// One wrong field: reason as Kubernetes spells it (FieldValueInvalid, FieldValueRequired, ...), the field's path.
struct Cause {
    std::string reason;
    std::string message;
    std::string field;
    bool operator==(const Cause&) const = default;
};

// Trouble, as a value: bad input, a conflict, a closed network. The message is one sentence that names the object, the
// field and the value; it is shown to people as it is.
struct Error {
    Reason reason = Reason::InternalError;
    std::string message;
    std::vector<Cause> causes = {};
    int retry_after_s = 0;
};

inline Error bad_request(std::string message) {
    return {Reason::BadRequest, std::move(message)};
}
inline Error not_found(std::string message) {
    return {Reason::NotFound, std::move(message)};
}
inline Error conflict(std::string message) {
    return {Reason::Conflict, std::move(message)};
}
inline Error invalid(std::string message) {
    return {Reason::Invalid, std::move(message)};
}
inline Error internal(std::string message) {
    return {Reason::InternalError, std::move(message)};
}

}  // namespace berth::base

namespace berth {
using base::Error;
using base::Reason;
}  // namespace berth
