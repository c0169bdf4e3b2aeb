#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/escape.h"

namespace berth::base {
namespace {

namespace bj = boost::json;

thread_local bj::memory_resource* scope = nullptr;  // of the innermost JsonScope

bj::storage_ptr storage() {
    return scope == nullptr ? bj::storage_ptr() : bj::storage_ptr(scope);
}

// Builds the document and notices duplicate keys, which Boost's own handler would silently merge.
struct StrictHandler {
    static constexpr size_t max_object_size = size_t(-1);
    static constexpr size_t max_array_size = size_t(-1);
    static constexpr size_t max_key_size = size_t(-1);
    static constexpr size_t max_string_size = size_t(-1);

    StrictHandler(unsigned char* buffer, size_t size) : stack({}, buffer, size) {
        if (keys.capacity() > kMostKept) keys = {};
        keys.clear();
        ends.clear();
    }

    // A thread parses one text at a time, and keeps the room for its keys.
    static constexpr size_t kMostKept = 64 << 10;
    static inline thread_local std::string keys;  // of all open objects, one behind the other, the innermost last
    static inline thread_local std::vector<uint32_t> ends;  // where each of them ends
    static inline thread_local std::vector<std::string_view> sorted;

    bj::value_stack stack;
    std::string duplicate;

    bool on_document_begin(bj::error_code&) { return true; }
    bool on_document_end(bj::error_code&) { return true; }
    bool on_object_begin(bj::error_code&) { return true; }
    bool on_object_end(size_t n, bj::error_code& ec) {
        const size_t first = ends.size() - n;
        const size_t begin = first == 0 ? 0 : ends[first - 1];
        if (may_repeat(first, begin) && repeats(first, begin)) {
            ec = bj::error::exception;
            return false;
        }
        keys.resize(begin);
        ends.resize(first);
        stack.push_object(n);
        return true;
    }
    // False when no two keys of the innermost object have the same length and the same ends: then none repeats.
    bool may_repeat(size_t first, size_t begin) const {
        uint64_t seen = 0;
        for (size_t i = first, at = begin; i < ends.size(); at = ends[i++]) {
            const size_t size = ends[i] - at;
            const auto front = static_cast<unsigned char>(size == 0 ? 0 : keys[at]);
            const auto back = static_cast<unsigned char>(size == 0 ? 0 : keys[at + size - 1]);
            const uint64_t bit = uint64_t(1) << ((size * 7 + front * 5 + back * 11) % 64);
            if ((seen & bit) != 0) return true;
            seen |= bit;
        }
        return false;
    }
    bool repeats(size_t first, size_t begin) {
        sorted.clear();
        for (size_t i = first, at = begin; i < ends.size(); at = ends[i++]) {
            sorted.emplace_back(keys.data() + at, ends[i] - at);
        }
        std::sort(sorted.begin(), sorted.end(), shorter_first);
        const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
        if (twice == sorted.end()) return false;
        duplicate = *twice;
        return true;
    }
    // Any order will do that brings equal ones together.
    static bool shorter_first(std::string_view a, std::string_view b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
    bool on_array_begin(bj::error_code&) { return true; }
    bool on_array_end(size_t n, bj::error_code&) {
        stack.push_array(n);
        return true;
    }
    bool on_key_part(bj::string_view s, size_t, bj::error_code&) {
        keys.append(s.data(), s.size());
        stack.push_chars(s);
        return true;
    }
    bool on_key(bj::string_view s, size_t, bj::error_code&) {
        keys.append(s.data(), s.size());
        ends.push_back(static_cast<uint32_t>(keys.size()));
        stack.push_key(s);
        return true;
    }
    bool on_string_part(bj::string_view s, size_t, bj::error_code&) {
        stack.push_chars(s);
        return true;
    }
    bool on_string(bj::string_view s, size_t, bj::error_code&) {
        stack.push_string(s);
        return true;
    }
    bool on_number_part(bj::string_view, bj::error_code&) { return true; }
    bool on_int64(int64_t i, bj::string_view, bj::error_code&) {
        stack.push_int64(i);
        return true;
    }
    bool on_uint64(uint64_t u, bj::string_view, bj::error_code&) {
        stack.push_uint64(u);
        return true;
    }
    // Boost's own value may be off in the last digit, and infinite. The text is whole, since it comes in one piece.
    bool on_double(double rough, bj::string_view s, bj::error_code& ec) {
        double exact = rough;
        (void)std::from_chars(s.data(), s.data() + s.size(), exact);
        if (!std::isfinite(exact)) {
            ec = bj::error::exponent_overflow;
            return false;
        }
        stack.push_double(exact == 0 ? 0.0 : exact);  // -0 would read back as the integer 0
        return true;
    }
    bool on_bool(bool b, bj::error_code&) {
        stack.push_bool(b);
        return true;
    }
    bool on_null(bj::error_code&) {
        stack.push_null();
        return true;
    }
    bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
    bool on_comment(bj::string_view, bj::error_code&) { return true; }
};

void append_double(double d, std::string& out) {
    const double magnitude = std::fabs(d);
    // Go writes plain digits up to 1e21; beyond 64 bits fast parsers refuse those.
    const bool plain = d == 0 || (magnitude >= 1e-6 && magnitude < 9e18);
    char buffer[64];
    const auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, d,
                                         plain ? std::chars_format::fixed : std::chars_format::scientific);
    CHECK(ec == std::errc());
    out.append(buffer, end);
}

}  // namespace

JsonScope::JsonScope() : memory_(first_.bytes.data(), first_.bytes.size()), outer_(scope) {
    scope = &memory_;
}

JsonScope::~JsonScope() {
    scope = outer_;
}

// The value at the start of the text; `used` says where it ends.
static Result<Json> parse_first(std::string_view text, size_t& used) {
    bj::parse_options options;
    options.max_depth = kMaxJsonDepth;
    __attribute__((uninitialized)) std::array<unsigned char, 8192> buffer;
    bj::basic_parser<StrictHandler> parser(options, buffer.data(), buffer.size());
    parser.handler().stack.reset(storage());
    bj::error_code ec;
    used = parser.write_some(false, text.data(), text.size(), ec);
    if (!parser.handler().duplicate.empty()) {
        return bad_request(
            fmt::format("invalid JSON: duplicate key \"{}\" before byte {}", parser.handler().duplicate, used));
    }
    if (ec) return bad_request(fmt::format("invalid JSON: {} at byte {}", ec.message(), used));
    return parser.handler().stack.release();
}

constexpr std::string_view kJsonSpace = " \t\r\n";

Result<Json> parse_json(std::string_view text) {
    size_t used = 0;
    auto value = parse_first(text, used);
    if (!value) return value;
    if (const auto rest = text.find_first_not_of(kJsonSpace, used); rest != std::string_view::npos)
        return bad_request(fmt::format("invalid JSON: unexpected text after the value at byte {}", rest));
    return value;
}

Result<std::vector<Json>> parse_json_values(std::string_view text) {
    std::vector<Json> values;
    size_t used = 0;
    for (auto at = text.find_first_not_of(kJsonSpace); at != std::string_view::npos;) {
        values.push_back(TRY(parse_first(text.substr(at), used)));
        at = text.find_first_not_of(kJsonSpace, at + used);
    }
    return values;
}

namespace {

bool escaped(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

// Whether a byte of the word must be escaped: a control character, a quote or a backslash. The high bit of each byte
// says so; only above the first such byte may it be wrong.
bool escapes(uint64_t word) {
    constexpr uint64_t kOnes = 0x0101010101010101;
    constexpr uint64_t kHigh = 0x8080808080808080;
    const auto zero = [](uint64_t w) { return (w - kOnes) & ~w & kHigh; };
    const uint64_t control = (word - kOnes * 0x20) & ~word & kHigh;
    return (control | zero(word ^ (kOnes * '"')) | zero(word ^ (kOnes * '\\'))) != 0;
}

template <class Word>
Word load(const char* from) {
    Word word = 0;
    std::memcpy(&word, from, sizeof word);
    return word;
}

// Whether all of it can stay as it is. The last word overlaps the one before.
bool plain(std::string_view text) {
    const char* at = text.data();
    const size_t size = text.size();
    if (size >= 8) {
        for (size_t i = 0; i + 8 < size; i += 8) {
            if (escapes(load<uint64_t>(at + i))) return false;
        }
        return !escapes(load<uint64_t>(at + size - 8));
    }
    if (size >= 4) {
        return !escapes(load<uint32_t>(at) | static_cast<uint64_t>(load<uint32_t>(at + size - 4)) << 32);
    }
    return std::none_of(text.begin(), text.end(), [](char c) { return escaped(c); });
}

}  // namespace

void append_quoted(std::string_view text, std::string& out) {
    if (plain(text)) {
        const size_t at = out.size();
        out.resize(at + text.size() + 2, '"');
        text.copy(out.data() + at + 1, text.size());
        return;
    }
    out.push_back('"');
    size_t start = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        if (!escaped(text[i])) continue;
        out.append(text, start, i - start);
        start = i + 1;
        append_escaped(static_cast<unsigned char>(text[i]), out);
    }
    out.append(text, start, text.size() - start);
    out.push_back('"');
}

void append_text(const Json& value, std::string& out) {
    switch (value.kind()) {
        case bj::kind::null:
            out += "null";
            break;
        case bj::kind::bool_:
            out += value.get_bool() ? "true" : "false";
            break;
        case bj::kind::int64:
            fmt::format_to(std::back_inserter(out), "{}", value.get_int64());
            break;
        case bj::kind::uint64:
            fmt::format_to(std::back_inserter(out), "{}", value.get_uint64());
            break;
        case bj::kind::double_:
            append_double(value.get_double(), out);
            break;
        case bj::kind::string:
            append_quoted(value.get_string(), out);
            break;
        case bj::kind::array: {
            out.push_back('[');
            bool first = true;
            for (const auto& item : value.get_array()) {
                if (!first) out.push_back(',');
                first = false;
                append_text(item, out);
            }
            out.push_back(']');
            break;
        }
        case bj::kind::object: {
            out.push_back('{');
            bool first = true;
            for (const auto& [key, item] : value.get_object()) {
                if (!first) out.push_back(',');
                first = false;
                append_quoted(key, out);
                out.push_back(':');
                append_text(item, out);
            }
            out.push_back('}');
            break;
        }
    }
}

std::string to_text(const Json& value) {
    std::string text;
    text.reserve(512);
    append_text(value, text);
    return text;
}

const Json* find(const Json& value, std::initializer_list<std::string_view> path) {
    const Json* at = &value;
    for (const auto key : path) {
        const auto* object = at->if_object();
        at = object ? object->if_contains(key) : nullptr;
        if (!at) return nullptr;
    }
    return at;
}

Json* find(Json& value, std::initializer_list<std::string_view> path) {
    return const_cast<Json*>(find(std::as_const(value), path));
}

std::string_view find_string(const Json& value, std::initializer_list<std::string_view> path) {
    const Json* at = find(value, path);
    const auto* text = at ? at->if_string() : nullptr;
    return text ? std::string_view(*text) : std::string_view();
}

JsonObject& object_at(Json& value, std::initializer_list<std::string_view> path) {
    Json* at = &value;
    for (const auto key : path) {
        if (!at->is_object()) *at = JsonObject();
        at = &at->get_object()[key];
    }
    if (!at->is_object()) *at = JsonObject();
    return at->get_object();
}

}  // namespace berth::base
