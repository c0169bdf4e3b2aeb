#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::link {

// A way around: connections go to it, and it makes those to the server.
struct Proxy {
    enum class Kind : uint8_t { Http, Socks5 };
    Kind kind = Kind::Http;
    std::string host;
    std::string port;
    std::string user;
    std::string password;
    bool operator==(const Proxy&) const = default;

    std::string url() const;  // without who we are
};

// http://[USER:PASSWORD@]HOST[:PORT] or socks5://...; without a scheme it is http. Proxies that want TLS themselves
// are refused.
Result<Proxy> parse_proxy(std::string_view url);

// What HTTPS_PROXY (HTTP_PROXY for servers without TLS) and NO_PROXY say, as Go reads them: also in small letters;
// never for localhost and loopback addresses.
Result<std::optional<Proxy>> proxy_from_environment(bool tls, const std::string& host, const std::string& port);
// One of NO_PROXY's entries means this server.
bool excepted_from_proxy(std::string_view no_proxy, const std::string& host, const std::string& port);

}  // namespace berth::link
