#pragma once

#include <array>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

// Mutable JSON documents (Boost.JSON): for what people send and what patches change. For decoding objects at speed see
// json_view.h.
namespace berth::base {

inline constexpr int kMaxJsonDepth = 128;

// Strict: one value and nothing after it; at most kMaxJsonDepth levels; duplicate keys, invalid UTF-8 and NaN are
// refused. The error says what and at which byte.
Result<Json> parse_json(std::string_view text);
// The same of values that follow each other, as programs print them. A byte in an error counts from its value's start.
Result<std::vector<Json>> parse_json_values(std::string_view text);

// While one lives, what parse_json() makes on this thread, and copies of it, stand in its memory, which goes all at
// once with it: for the documents of one request, of which only texts remain. The innermost counts.
class JsonScope {
public:
    JsonScope();
    ~JsonScope();
    JsonScope(const JsonScope&) = delete;
    JsonScope& operator=(const JsonScope&) = delete;

private:
    struct Place {
        Place() {}  // not filled: each request would pay for 24 KB of zeros
        std::array<unsigned char, 24 << 10> bytes;
    };
    Place first_;
    boost::json::monotonic_resource memory_;
    boost::json::memory_resource* outer_;
};

// Compact text; keys in the document's order; doubles with the digits that Go prints, an exponent from 9e18 on.
std::string to_text(const Json& value);
void append_text(const Json& value, std::string& out);
// A JSON string with quotes and escapes.
void append_quoted(std::string_view text, std::string& out);

// The value at a path of object keys, or nullptr.
const Json* find(const Json& value, std::initializer_list<std::string_view> path);
Json* find(Json& value, std::initializer_list<std::string_view> path);
// The string at a path, or "" when it is absent or not a string.
std::string_view find_string(const Json& value, std::initializer_list<std::string_view> path);
// The object at a path, made where it is missing.
JsonObject& object_at(Json& value, std::initializer_list<std::string_view> path);

}  // namespace berth::base
