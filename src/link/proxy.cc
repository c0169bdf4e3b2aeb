#include "link/proxy.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "link/url.h"

namespace berth::link {
namespace {

std::optional<std::string> percent_decoded(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        unsigned value = 0;
        const auto digits = text.substr(i + 1, 2);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
        out += static_cast<char>(value);
        i += 2;
    }
    return out;
}

// Four or sixteen bytes; none when it is a name.
std::string address_bytes(const std::string& host) {
    std::array<char, sizeof(in6_addr)> bytes{};
    if (::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1) return {bytes.data(), sizeof(in_addr)};
    if (::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) return {bytes.data(), sizeof(in6_addr)};
    return {};
}

// "10.0.0.0/8"
bool in_network(std::string_view network, const std::string& address) {
    const auto slash = network.find('/');
    if (slash == std::string_view::npos || address.empty()) return false;
    const std::string base = address_bytes(std::string(network.substr(0, slash)));
    size_t bits = 0;
    const auto digits = network.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc() || base.size() != address.size() || bits > base.size() * 8) return false;
    for (size_t bit = 0; bit < bits; ++bit) {
        const unsigned mask = 0x80u >> (bit % 8);
        if (((static_cast<unsigned char>(base[bit / 8]) ^ static_cast<unsigned char>(address[bit / 8])) & mask) != 0) {
            return false;
        }
    }
    return true;
}

std::string small(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
    return out;
}

std::string_view trimmed_entry(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

bool entry_means(std::string_view entry, const std::string& host, const std::string& port) {
    if (entry == "*") return true;
    const std::string address = address_bytes(host);
    if (in_network(entry, address)) return true;
    const bool bare_ipv6 = !address_bytes(std::string(entry)).empty();
    const auto named = bare_ipv6 ? HostPort{std::string(entry), ""} : split_authority(entry).value_or(HostPort{});
    if (named.host.empty() || (!named.port.empty() && named.port != port)) return false;
    if (!address.empty()) return address_bytes(named.host) == address;
    std::string_view domain = named.host;
    if (domain.starts_with("*.")) domain.remove_prefix(1);
    if (domain.starts_with('.')) return host.ends_with(domain);
    return host == domain || host.ends_with("." + std::string(domain));
}

bool is_this_machine(const std::string& host) {
    const std::string address = address_bytes(host);
    if (address.size() == sizeof(in_addr)) return address[0] == 127;
    return host == "localhost" || host == "::1";
}

std::string variable(const char* name, const char* small_name) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == 0) value = std::getenv(small_name);
    return value == nullptr ? "" : value;
}

}  // namespace

std::string Proxy::url() const {
    return fmt::format("{}://{}:{}", kind == Kind::Http ? "http" : "socks5", host, port);
}

Result<Proxy> parse_proxy(std::string_view url) {
    const Error wrong = base::bad_request("is not http://HOST[:PORT] or socks5://HOST[:PORT]");
    Proxy out;
    std::string_view rest = url;
    if (const auto scheme = url.find("://"); scheme != std::string_view::npos) {
        const std::string name = small(url.substr(0, scheme));
        if (name == "https") return base::bad_request("is a proxy with TLS of its own, which is not supported");
        if (name != "http" && name != "socks5" && name != "socks5h") return wrong;
        if (name != "http") out.kind = Proxy::Kind::Socks5;
        rest = url.substr(scheme + 3);
    }
    rest = rest.substr(0, rest.find('/'));
    if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
        const auto who = rest.substr(0, at);
        const auto colon = who.find(':');
        const auto user = percent_decoded(who.substr(0, colon));
        const auto password = percent_decoded(colon == std::string_view::npos ? "" : who.substr(colon + 1));
        if (!user || !password || user->size() > 255 || password->size() > 255) return wrong;
        out.user = *user;
        out.password = *password;
        rest.remove_prefix(at + 1);
    }
    const auto authority = split_authority(rest);
    if (!authority) return wrong;
    out.host = authority->host;
    out.port = authority->port.empty() ? (out.kind == Proxy::Kind::Http ? "80" : "1080") : authority->port;
    return out;
}

bool excepted_from_proxy(std::string_view no_proxy, const std::string& host, const std::string& port) {
    const std::string name = small(host), all = small(no_proxy);
    for (std::string_view rest = all; !rest.empty();) {
        const auto comma = rest.find(',');
        if (entry_means(trimmed_entry(rest.substr(0, comma)), name, port)) return true;
        rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
    return false;
}

Result<std::optional<Proxy>> proxy_from_environment(bool tls, const std::string& host, const std::string& port) {
    const std::string url = tls ? variable("HTTPS_PROXY", "https_proxy") : variable("HTTP_PROXY", "http_proxy");
    if (url.empty() || is_this_machine(small(host))) return std::optional<Proxy>();
    if (excepted_from_proxy(variable("NO_PROXY", "no_proxy"), host, port)) return std::optional<Proxy>();
    auto proxy = parse_proxy(url);
    // The value may hold a password.
    if (!proxy) {
        return base::bad_request(
            fmt::format("{} in the environment {}", tls ? "HTTPS_PROXY" : "HTTP_PROXY", proxy.error().message));
    }
    return std::optional<Proxy>(std::move(*proxy));
}

}  // namespace berth::link
