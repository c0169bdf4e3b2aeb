#include "base/base64.h"

#include <array>
#include <cstdint>

namespace berth::base {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> kValues = [] {
    std::array<int8_t, 256> values{};
    values.fill(-1);
    for (size_t i = 0; i < kAlphabet.size(); ++i)
        values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
    return values;
}();

}  // namespace

std::string to_base64(std::string_view bytes) {
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const auto byte = [&](size_t k) -> uint32_t {
            return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0;
        };
        const uint32_t group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (size_t k = 0; k < 4; ++k) {
            const bool padding = i + k > bytes.size();
            out.push_back(padding ? '=' : kAlphabet[group >> (18 - 6 * k) & 63]);
        }
    }
    return out;
}

std::optional<std::string> from_base64(std::string_view text) {
    std::string out;
    uint32_t group = 0;
    int digits = 0;
    int padding = 0;
    for (const char c : text) {
        if (c == '\n' || c == '\r') continue;
        const int value = c == '=' ? 0 : kValues[static_cast<unsigned char>(c)];
        if (value < 0 || (c != '=' && padding > 0)) return std::nullopt;
        padding += c == '=' ? 1 : 0;
        group = group << 6 | static_cast<uint32_t>(value);
        if (++digits < 4) continue;
        if (padding > 2) return std::nullopt;
        for (int k = 0; k < 3 - padding; ++k) out.push_back(static_cast<char>(group >> (16 - 8 * k) & 255));
        digits = 0;
        group = 0;
    }
    // A group that was closed by padding must be the last one.
    if (digits != 0 || padding > 2) return std::nullopt;
    return out;
}

}  // namespace berth::base
