#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

// Cuts a JSON text into its parts without reading them, so that one unreadable part harms nobody but itself. Only the
// brackets and strings must be whole; what stands between them is for whoever reads the part.
namespace berth::link {

using Member = std::pair<std::string_view, std::string_view>;  // the key between its quotes, as written; the value

// Nothing when it is no object, or its brackets do not match.
std::optional<std::vector<Member>> members(std::string_view object);
// The value of one key, by a look at no more than what stands before its end; whether the rest is whole, nobody knows.
std::optional<std::string_view> member(std::string_view object, std::string_view key);
std::optional<std::vector<std::string_view>> elements(std::string_view array);

}  // namespace berth::link
