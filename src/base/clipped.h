#pragma once

#include <string>

namespace berth::base {

// What is at most repeated of a value, a name or a path that somebody sent.
inline constexpr size_t kMostRepeated = 1024;

// The beginning of a text that is longer than that, whole UTF-8 characters, and a mark.
inline std::string clipped(std::string text, size_t most = kMostRepeated) {
    if (text.size() <= most) return text;
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
    text.resize(most);
    return text + "...";
}

}  // namespace berth::base
