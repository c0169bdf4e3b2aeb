#include "base/escape.h"

#include <algorithm>
#include <string_view>

namespace berth::base {
namespace {

unsigned byte_at(std::string_view text, size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

// The character here that is not for a reader's line, and how many bytes it has: 0, none. Those of C1, the separators
// of lines, and the marks that turn the direction have two or three bytes in UTF-8.
size_t unwanted(std::string_view text, size_t i, char32_t& c) {
    const unsigned first = byte_at(text, i);
    if (first < 0x20 || first == 0x7f) {
        c = first;
        return 1;
    }
    const unsigned second = byte_at(text, i + 1);
    if (first == 0xc2 && second >= 0x80 && second < 0xa0) {
        c = second;
        return 2;
    }
    if (first != 0xe2 || (second != 0x80 && second != 0x81)) return 0;
    c = 0x2000 + (second & 1U) * 0x40 + (byte_at(text, i + 2) & 0x3fU);
    const bool turns = c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
    return turns || c == 0x2028 || c == 0x2029 ? 3 : 0;
}

// Any of its bytes begins all that is unwanted.
bool may_begin(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f || byte == 0xc2 || byte == 0xe2;
}

}  // namespace

void append_escaped(char32_t c, std::string& out) {
    static constexpr char kHex[] = "0123456789abcdef";
    switch (c) {
        case '"':
            out += "\\\"";
            return;
        case '\\':
            out += "\\\\";
            return;
        case '\n':
            out += "\\n";
            return;
        case '\r':
            out += "\\r";
            return;
        case '\t':
            out += "\\t";
            return;
        default:
            out += "\\u";
            for (int shift = 12; shift >= 0; shift -= 4) out += kHex[c >> shift & 15U];
    }
}

std::string one_line(std::string text) {
    if (std::none_of(text.begin(), text.end(), may_begin)) return text;
    std::string out;
    for (size_t i = 0; i < text.size();) {
        char32_t c = 0;
        const size_t bytes = unwanted(text, i, c);
        if (bytes == 0) {
            out += text[i++];
        } else {
            append_escaped(c, out);
            i += bytes;
        }
    }
    return out;
}

}  // namespace berth::base
