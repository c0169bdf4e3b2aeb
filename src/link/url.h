#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::link {

struct HostPort {
    std::string host;
    std::string port;  // empty: none was named
};
// "host", "host:1", "[::1]:1"; nothing when it is none of them.
std::optional<HostPort> split_authority(std::string_view text);

// "https://host:6443/prefix", "https://[::1]:6443".
struct HttpUrl {
    bool tls = true;
    std::string host;
    std::string port;  // 443 or 80 where it names none
    std::string path;  // no slash at its end
};
Result<HttpUrl> parse_url(std::string_view url);

}  // namespace berth::link
