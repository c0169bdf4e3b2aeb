#pragma once

#include <absl/container/flat_hash_map.h>

#include <functional>
#include <string>
#include <string_view>

namespace berth::base {

// Debian's Abseil has a string_view of its own, so a std::string_view needs this to look up a std::string key.
struct StringHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// A hash map by string. Its order differs from run to run: never decide by walking it.
template <class Value>
using StringMap = absl::flat_hash_map<std::string, Value, StringHash, std::equal_to<>>;

}  // namespace berth::base
