#include "base/yaml_scalar.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/base64.h"

namespace berth::base {
namespace {

constexpr std::string_view kTrue[] = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
constexpr std::string_view kFalse[] = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
constexpr std::string_view kNull[] = {"", "~", "null", "Null", "NULL"};
constexpr std::string_view kNotFinite[] = {".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
                                           "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};

template <size_t N>
bool among(const std::string_view (&words)[N], std::string_view text) {
    return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::optional<uint64_t> magnitude(std::string_view digits) {
    int base = 10;
    if (digits.size() > 1 && digits.front() == '0') {
        const char letter = static_cast<char>(digits[1] | 0x20);
        base = letter == 'x' ? 16 : (letter == 'b' ? 2 : 8);
        digits.remove_prefix(letter == 'x' || letter == 'b' || letter == 'o' ? 2 : 1);
    }
    uint64_t value = 0;
    const char* const last = digits.data() + digits.size();
    const auto [end, ec] = std::from_chars(digits.data(), last, value, base);
    if (ec != std::errc() || end != last) return std::nullopt;
    return value;
}

// 12, -0x1F, 0b101, 0o17, 017.
std::optional<Json> integer(std::string_view text) {
    const bool negative = text.starts_with('-');
    const bool sign = negative || text.starts_with('+');
    if (sign) text.remove_prefix(1);
    const auto value = magnitude(text);
    if (!value) return std::nullopt;
    constexpr uint64_t kLimit = uint64_t{1} << 63;
    if (negative) return *value <= kLimit ? std::optional<Json>(static_cast<int64_t>(-*value)) : std::nullopt;
    if (*value < kLimit) return Json(static_cast<int64_t>(*value));
    return sign ? std::nullopt : std::optional<Json>(*value);
}

void skip_digits(std::string_view& text) {
    text.remove_prefix(static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin()));
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool looks_like_float(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    const size_t before = text.size();
    skip_digits(text);
    const bool whole = text.size() < before;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        const size_t point = text.size();
        skip_digits(text);
        if (!whole && text.size() == point) return false;
    } else if (!whole) {
        return false;
    }
    if (!text.starts_with('e') && !text.starts_with('E')) return text.empty();
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    const size_t exponent = text.size();
    skip_digits(text);
    return text.empty() && exponent > 0;
}

std::optional<Json> number(std::string_view text) {
    std::string plain(text);
    if (text.front() != '.') std::erase(plain, '_');
    if (auto whole = text.front() == '.' ? std::nullopt : integer(plain)) return whole;
    if (!looks_like_float(plain)) return std::nullopt;
    const double value = std::strtod(plain.c_str(), nullptr);
    if (!std::isfinite(value)) return std::nullopt;
    return Json(value);
}

Error not_as(std::string_view text, std::string_view type) {
    return bad_request(fmt::format("\"{}\" is not {}", text.substr(0, 64), type));
}

// The meaning of an untagged, unquoted scalar.
Result<Json> guessed(std::string_view text) {
    if (among(kNull, text)) return Json(nullptr);
    if (among(kTrue, text)) return Json(true);
    if (among(kFalse, text)) return Json(false);
    if (among(kNotFinite, text)) return not_as(text, "a number that JSON can carry");
    const char first = text.front();
    if (is_digit(first) || first == '-' || first == '+' || first == '.') {
        if (auto value = number(text)) return *std::move(value);
    }
    return Json(text);
}

Result<Json> tagged_number(YamlTag tag, std::string_view text) {
    Json value = TRY(guessed(text));
    if (tag == YamlTag::Float && (value.is_int64() || value.is_uint64())) return Json(value.to_number<double>());
    if (tag == YamlTag::Float ? value.is_double() : value.is_int64() || value.is_uint64()) return value;
    return not_as(text, tag == YamlTag::Float ? "a float" : "an integer");
}

Result<Json> binary(std::string_view text) {
    const auto bytes = from_base64(text);
    if (!bytes || !simdjson::validate_utf8(*bytes)) return not_as(text, "base64 of a text");
    return Json(std::string_view(*bytes));
}

Result<Json> meaning(YamlTag tag, std::string_view text) {
    switch (tag) {
        case YamlTag::None:
            return guessed(text);
        case YamlTag::String:
        case YamlTag::Timestamp:
        case YamlTag::Other:
            return Json(text);
        case YamlTag::Binary:
            return binary(text);
        case YamlTag::Int:
        case YamlTag::Float:
            return tagged_number(tag, text);
        case YamlTag::Bool:
            if (among(kTrue, text) || among(kFalse, text)) return Json(among(kTrue, text));
            return not_as(text, "a boolean");
        case YamlTag::Null:
            if (among(kNull, text)) return Json(nullptr);
            return not_as(text, "null");
    }
    return not_as(text, "a scalar");
}

// 1e3 is a float to YAML, but travels as 1000 and is read as an integer.
Json without_fraction(Json value) {
    const double* number = value.if_double();
    if (!number || *number != std::trunc(*number)) return value;
    constexpr double kInt64End = 9223372036854775808.0;
    if (*number > -kInt64End && *number < kInt64End) return Json(static_cast<int64_t>(*number));
    if (*number >= 0 && *number < 2 * kInt64End) return Json(static_cast<uint64_t>(*number));
    return value;
}

// As Go's %g with the digits of a 32-bit float: what kubectl makes of a float used as a key.
std::string float_key(double value) {
    const auto single = static_cast<float>(value);
    char buffer[64];
    const auto text = [&](std::chars_format format) {
        const auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, single, format);
        return std::string_view(buffer, static_cast<size_t>(end - buffer));
    };
    const auto scientific = text(std::chars_format::scientific);
    const int exponent = std::atoi(std::string(scientific.substr(scientific.find('e') + 1)).c_str());
    if (exponent < -4 || exponent >= 6) return std::string(scientific);
    return std::string(text(std::chars_format::fixed));
}

}  // namespace

YamlTag yaml_tag(const char* tag) {
    if (!tag) return YamlTag::None;
    std::string_view name(tag);
    constexpr std::string_view kPrefix = "tag:yaml.org,2002:";
    if (name.empty() || !name.starts_with(kPrefix)) return YamlTag::Other;
    name.remove_prefix(kPrefix.size());
    if (name == "str") return YamlTag::String;
    if (name == "binary") return YamlTag::Binary;
    if (name == "int") return YamlTag::Int;
    if (name == "float") return YamlTag::Float;
    if (name == "bool") return YamlTag::Bool;
    if (name == "null") return YamlTag::Null;
    if (name == "timestamp") return YamlTag::Timestamp;
    return YamlTag::Other;
}

Result<Json> yaml_scalar(YamlTag tag, std::string_view text) {
    return without_fraction(TRY(meaning(tag, text)));
}

Result<std::string> yaml_key(YamlTag tag, std::string_view text) {
    const Json value = TRY(meaning(tag, text));
    if (const auto* string = value.if_string()) return std::string(*string);
    if (value.is_null()) return bad_request("null cannot be a key");
    if (const auto* number = value.if_double()) return float_key(*number);
    return to_text(value);
}

}  // namespace berth::base
