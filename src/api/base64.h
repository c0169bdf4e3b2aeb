#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::api {

std::string base64_encode(std::string_view bytes);
// The URL alphabet, without padding.
std::string base64url_encode(std::string_view bytes);
// With or without padding; nothing when malformed.
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace berth::api
