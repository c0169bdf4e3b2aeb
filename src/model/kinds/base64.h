#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::model {

// Standard base64 with padding, as JSON carries bytes; nullopt when it is not that.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace berth::model
