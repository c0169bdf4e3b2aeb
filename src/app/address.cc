#include "app/address.h"

#include <fmt/format.h>

#include <charconv>

namespace berth::app {

bool Address::loopback() const {
    return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<Address> parse_address(const std::string& flag, const std::string& text) {
    const auto colon = text.rfind(':');
    const Error wrong = base::bad_request(fmt::format("{} {} is not HOST:PORT", flag, text));
    if (colon == std::string::npos) return wrong;
    Address out{text.substr(0, colon)};
    if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']') {
        out.host = out.host.substr(1, out.host.size() - 2);
    }
    if (out.host.empty()) out.host = "127.0.0.1";
    const std::string_view port = std::string_view(text).substr(colon + 1);
    const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (ec != std::errc{} || end != port.data() + port.size()) return wrong;
    return out;
}

}  // namespace berth::app
