#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace berth::base {

// RFC 4648 with padding, as Secrets and kubeconfigs carry it.
std::string to_base64(std::string_view bytes);
// Line breaks are skipped; anything else that is not base64 gives nothing.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace berth::base
