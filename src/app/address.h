#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace berth::app {

struct Address {
    std::string host;
    uint16_t port = 0;
    bool loopback() const;
};

// "HOST:PORT", "[::1]:PORT", ":PORT" (on the loopback); the error names the flag.
Result<Address> parse_address(const std::string& flag, const std::string& text);

}  // namespace berth::app
