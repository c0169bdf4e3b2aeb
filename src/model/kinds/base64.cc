#include "model/kinds/base64.h"

#include <array>
#include <cstdint>

namespace berth::model {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> make_values() {
    std::array<int8_t, 256> values{};
    values.fill(-1);
    for (size_t i = 0; i < kAlphabet.size(); ++i) values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<int8_t>(i);
    return values;
}
constexpr auto kValues = make_values();

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    size_t padding = 0;
    while (padding < 2 && text.size() > padding && text[text.size() - 1 - padding] == '=') ++padding;
    std::string out;
    out.reserve(text.size() / 4 * 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        const bool pad = i + padding >= text.size();
        const int8_t value = pad ? int8_t(0) : kValues[static_cast<uint8_t>(text[i])];
        if (value < 0) return std::nullopt;
        bits = bits << 6 | static_cast<uint32_t>(value);
        if (i % 4 != 3) continue;
        for (const int shift : {16, 8, 0}) out.push_back(static_cast<char>(bits >> shift & 0xff));
        bits = 0;
    }
    out.resize(out.size() - padding);
    return out;
}

std::string encode_base64(std::string_view bytes) {
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t bits = 0;
        for (size_t j = i; j < i + 3; ++j) bits = bits << 8 | (j < bytes.size() ? static_cast<uint8_t>(bytes[j]) : 0U);
        for (size_t j = 0; j < 4; ++j) {
            out.push_back(i + j > bytes.size() ? '=' : kAlphabet[bits >> (18 - 6 * j) & 63]);
        }
    }
    return out;
}

}  // namespace berth::model
