#include "link/spans.h"

#include <array>

namespace berth::link {
namespace {

constexpr size_t kBroken = std::string_view::npos;

size_t skip_space(std::string_view text, size_t at) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) ++at;
    return at;
}

// From an opening quote to behind the closing one, which an even number of backslashes stands before.
size_t skip_string(std::string_view text, size_t at) {
    const size_t begin = at + 1;
    for (at = text.find('"', begin); at != std::string_view::npos; at = text.find('"', at + 1)) {
        size_t plain = at;
        while (plain > begin && text[plain - 1] == '\\') --plain;
        if ((at - plain) % 2 == 0) return at + 1;
    }
    return kBroken;
}

// The bytes that mean something outside of strings.
constexpr auto kMarks = [] {
    std::array<bool, 256> out{};
    for (const char c : std::string_view("\"{}[],")) out[static_cast<unsigned char>(c)] = true;
    return out;
}();

// From the beginning of a value to behind its end.
size_t skip_value(std::string_view text, size_t at) {
    size_t depth = 0;
    while (at < text.size()) {
        const char c = text[at];
        if (!kMarks[static_cast<unsigned char>(c)]) {
            ++at;
            continue;
        }
        if (c == '"') {
            at = skip_string(text, at);
            if (at == kBroken || depth == 0) return at;
            continue;
        }
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') {
            if (depth == 0) return at;  // behind a number or a word
            if (--depth == 0) return at + 1;
        }
        if (c == ',' && depth == 0) return at;
        ++at;
    }
    return kBroken;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r' || text.back() == '\t')) {
        text.remove_suffix(1);
    }
    return text;
}

// Calls each(at) at the beginning of every item between the brackets; it returns where the item ends.
template <class Each>
bool walk(std::string_view text, char open, char close, Each each) {
    size_t at = skip_space(text, 0);
    if (at >= text.size() || text[at] != open) return false;
    at = skip_space(text, at + 1);
    if (at < text.size() && text[at] == close) return true;
    while (at < text.size()) {
        at = each(at);
        if (at == kBroken) return false;
        at = skip_space(text, at);
        if (at < text.size() && text[at] == close) return true;
        if (at >= text.size() || text[at] != ',') return false;
        at = skip_space(text, at + 1);
    }
    return false;
}

// Calls each(key, at) for every member, with where its value begins; it returns where the value ends.
template <class Each>
bool walk_members(std::string_view object, Each each) {
    return walk(object, '{', '}', [&](size_t at) {
        if (object[at] != '"') return kBroken;
        const size_t key_end = skip_string(object, at);
        if (key_end == kBroken) return kBroken;
        const size_t colon = skip_space(object, key_end);
        if (colon >= object.size() || object[colon] != ':') return kBroken;
        return each(object.substr(at + 1, key_end - at - 2), skip_space(object, colon + 1));
    });
}

}  // namespace

std::optional<std::vector<Member>> members(std::string_view object) {
    std::vector<Member> out;
    const bool whole = walk_members(object, [&](std::string_view key, size_t begin) {
        const size_t end = skip_value(object, begin);
        if (end != kBroken) out.emplace_back(key, trimmed(object.substr(begin, end - begin)));
        return end;
    });
    if (!whole) return std::nullopt;
    return out;
}

std::optional<std::string_view> from_member(std::string_view object, std::string_view wanted) {
    std::optional<std::string_view> out;
    walk_members(object, [&](std::string_view key, size_t begin) {
        if (key != wanted) return skip_value(object, begin);
        out = object.substr(begin);
        return kBroken;
    });
    return out;
}

void take_members(std::string_view text, const std::function<bool(std::string_view, std::string_view)>& take) {
    walk_members(text, [&](std::string_view key, size_t begin) {
        const size_t end = skip_value(text, begin);
        if (end == kBroken) return kBroken;
        return take(key, trimmed(text.substr(begin, end - begin))) ? end : kBroken;
    });
}

std::optional<std::vector<std::string_view>> elements(std::string_view array) {
    std::vector<std::string_view> out;
    const bool whole = walk(array, '[', ']', [&](size_t at) {
        const size_t end = skip_value(array, at);
        if (end != kBroken) out.push_back(trimmed(array.substr(at, end - at)));
        return end;
    });
    if (!whole) return std::nullopt;
    return out;
}

}  // namespace berth::link
