#include "ledger/uid.h"

#include <absl/hash/hash.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <functional>

namespace berth::ledger {
namespace {

constexpr uint64_t every(uint8_t byte) {
    return byte * 0x0101010101010101;
}

uint64_t join(const char* four, const char* more) {
    uint64_t text = 0;
    std::memcpy(&text, four, 4);
    std::memcpy(reinterpret_cast<char*>(&text) + 4, more, 4);
    return text;
}

// The number that eight lower-case hexadecimal digits stand for, all at once; false: some are none.
bool read_digits(uint64_t text, uint64_t& number) {
    const uint64_t letters = text >> 6 & every(1);
    uint64_t digits = (text & every(0xf)) + letters * 9;
    const uint64_t beyond_nine = (digits + every(6)) >> 4 & every(1);
    const bool good = beyond_nine == letters && (digits & every(0x10)) == 0 &&
                      digits + every('0') + letters * ('a' - 10 - '0') == text;
    if constexpr (std::endian::native == std::endian::little) digits = __builtin_bswap64(digits);
    digits = (digits | digits >> 4) & 0x00ff00ff00ff00ff;
    digits = (digits | digits >> 8) & 0x0000ffff0000ffff;
    number = (digits | digits >> 16) & 0xffffffff;
    return good;
}

// 8-4-4-4-12 lower-case hexadecimal digits.
bool read_uuid(std::string_view text, uint64_t& high, uint64_t& low) {
    if (text.size() != 36) return false;
    const char* at = text.data();
    if (at[8] != '-' || at[13] != '-' || at[18] != '-' || at[23] != '-') return false;
    std::array<uint64_t, 4> parts{};
    const bool good = read_digits(join(at, at + 4), parts[0]) && read_digits(join(at + 9, at + 14), parts[1]) &&
                      read_digits(join(at + 19, at + 24), parts[2]) && read_digits(join(at + 28, at + 32), parts[3]);
    high = parts[0] << 32 | parts[1];
    low = parts[2] << 32 | parts[3];
    return good;
}

}  // namespace

Uid::Uid(std::string_view text) {
    if (read_uuid(text, high_, low_)) return;
    high_ = low_ = 0;
    other_ = Text(text);
}

std::string Uid::text() const {
    if (other_.is_set()) return std::string(other_.view());
    return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high_ >> 32, high_ >> 16 & 0xffff, high_ & 0xffff,
                       low_ >> 48, low_ & 0xffffffffffff);
}

size_t Uid::hash() const {
    if (other_.is_set()) return std::hash<std::string_view>()(other_.view());
    return absl::HashOf(high_, low_);
}

bool Uid::operator==(const Uid& other) const {
    return high_ == other.high_ && low_ == other.low_ && other_.is_set() == other.other_.is_set() &&
           other_.view() == other.other_.view();
}

}  // namespace berth::ledger
