#include <algorithm>
#include <array>
#include <cctype>

#include "base/yaml.h"

namespace berth::base {
namespace {

// A word that is itself in every YAML; everything else is quoted.
bool is_plain(std::string_view text) {
    constexpr std::array<std::string_view, 11> kWords{"true", "false", "yes",  "no",  "on", "off",
                                                      "y",    "n",     "null", "nan", "inf"};
    if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) == 0) return false;
    std::string lower;
    for (const char c : text) {
        const auto letter = static_cast<unsigned char>(c);
        if (std::isalnum(letter) == 0 && c != '-' && c != '_' && c != '.' && c != '/') return false;
        lower.push_back(static_cast<char>(std::tolower(letter)));
    }
    return std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

void append_scalar(const Json& value, std::string& out) {
    const auto* text = value.if_string();
    if (text != nullptr && is_plain(*text)) {
        out += std::string_view(*text);
    } else {
        out += to_text(value);
    }
}

bool is_block(const Json& value) {
    if (const auto* object = value.if_object()) return !object->empty();
    const auto* list = value.if_array();
    return list != nullptr && !list->empty();
}

void append(const Json& value, size_t depth, std::string& out);

// Behind "key:" or "-". A list stands below its key without further space, as kubectl writes it.
void append_below(const Json& value, size_t depth, std::string& out) {
    if (!is_block(value)) {
        out += ' ';
        append_scalar(value, out);
        out += '\n';
        return;
    }
    out += '\n';
    append(value, depth, out);
}

void append_members(const JsonObject& object, size_t depth, bool first_in_place, std::string& out) {
    for (const auto& member : object) {
        if (!first_in_place) out.append(2 * depth, ' ');
        first_in_place = false;
        append_scalar(Json(member.key()), out);
        out += ':';
        append_below(member.value(), member.value().is_array() ? depth : depth + 1, out);
    }
}

void append(const Json& value, size_t depth, std::string& out) {
    if (const auto* object = value.if_object()) return append_members(*object, depth, false, out);
    for (const auto& item : value.get_array()) {
        out.append(2 * depth, ' ');
        out += '-';
        const auto* object = item.if_object();
        if (object == nullptr || object->empty()) {
            append_below(item, depth + 1, out);
            continue;
        }
        out += ' ';
        append_members(*object, depth + 1, true, out);
    }
}

}  // namespace

std::string yaml_text(const Json& value) {
    std::string out;
    if (is_block(value)) {
        append(value, 0, out);
    } else {
        append_scalar(value, out);
        out += '\n';
    }
    return out;
}

}  // namespace berth::base
