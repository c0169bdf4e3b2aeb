#pragma once

#include <cstring>
#include <string_view>

namespace berth::base {

// For a quick look before a text is parsed. The C library's search is many times as fast as std::string's where the
// word's first character is common, as quotes are.
inline bool mentions(std::string_view text, std::string_view word) {
    return ::memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
}

}  // namespace berth::base
