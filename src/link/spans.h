#pragma once

#include <functional>
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
// The text from where the value of a key begins. Nothing behind that is looked at: whether it is whole, nobody knows.
std::optional<std::string_view> from_member(std::string_view object, std::string_view key);
// Calls take(key, value) for the members of the object that the text begins with until it returns false. Nothing behind
// that is looked at.
void take_members(std::string_view text, const std::function<bool(std::string_view, std::string_view)>& take);
std::optional<std::vector<std::string_view>> elements(std::string_view array);

}  // namespace berth::link
