#include "link/url.h"

#include <fmt/format.h>

#include <charconv>

namespace berth::link {
namespace {

bool is_port(std::string_view text) {
    uint16_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number > 0;
}

}  // namespace

std::optional<HostPort> split_authority(std::string_view text) {
    HostPort out;
    std::string_view behind;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos) return std::nullopt;
        out.host = text.substr(1, end - 1);
        behind = text.substr(end + 1);
    } else {
        const auto end = text.find(':');
        out.host = text.substr(0, end);
        if (end != std::string_view::npos) behind = text.substr(end);
    }
    if (out.host.empty() || (!behind.empty() && !behind.starts_with(':'))) return std::nullopt;
    if (!behind.empty()) {
        out.port = behind.substr(1);
        if (!is_port(out.port)) return std::nullopt;
    }
    return out;
}

Result<HttpUrl> parse_url(std::string_view url) {
    const Error wrong = base::bad_request(fmt::format("\"{}\" is not http(s)://HOST[:PORT][/PATH]", url));
    HttpUrl out;
    std::string_view rest = url;
    out.tls = rest.starts_with("https://");
    if (!out.tls && !rest.starts_with("http://")) return wrong;
    rest.remove_prefix(rest.find("//") + 2);
    const auto slash = rest.find('/');
    if (slash != std::string_view::npos) out.path = rest.substr(slash);
    while (out.path.ends_with('/')) out.path.pop_back();
    const auto authority = split_authority(rest.substr(0, slash));
    if (!authority || authority->host.find_first_of(" @") != std::string::npos) return wrong;
    out.host = authority->host;
    out.port = authority->port.empty() ? (out.tls ? "443" : "80") : authority->port;
    return out;
}

}  // namespace berth::link
