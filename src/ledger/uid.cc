#include "ledger/uid.h"

#include <absl/hash/hash.h>
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <functional>

namespace berth::ledger {
namespace {

using Text16 [[gnu::vector_size(16)]] = uint8_t;
using Pairs [[gnu::vector_size(16)]] = uint16_t;
using Halves [[gnu::vector_size(16)]] = uint64_t;
using Bytes8 [[gnu::vector_size(8)]] = uint8_t;

uint64_t load(const char* eight) {
    uint64_t text = 0;
    std::memcpy(&text, eight, 8);
    return text;
}

uint64_t join(const char* four, const char* more) {
    uint64_t text = 0;
    std::memcpy(&text, four, 4);
    std::memcpy(reinterpret_cast<char*>(&text) + 4, more, 4);
    return text;
}

// The number that sixteen lower-case hexadecimal digits stand for, all at once; false: some are none.
bool read_digits(uint64_t first, uint64_t second, uint64_t& number) {
    constexpr bool kLittle = std::endian::native == std::endian::little;
    const auto text = std::bit_cast<Text16>(Halves{first, second});
    const auto letters = std::bit_cast<Text16>(text > '9');
    const Text16 digits = text - '0' - (letters & ('a' - '0' - 10));
    const auto bad =
        std::bit_cast<Halves>(std::bit_cast<Text16>(digits > 15) | (letters & std::bit_cast<Text16>(digits < 10)));
    const auto pairs = std::bit_cast<Pairs>(digits);
    const Pairs bytes = kLittle ? (pairs << 4 | pairs >> 8) & 0xff : (pairs >> 4 | pairs) & 0xff;
    number = std::bit_cast<uint64_t>(__builtin_convertvector(bytes, Bytes8));
    if constexpr (kLittle) number = __builtin_bswap64(number);
    return (bad[0] | bad[1]) == 0;
}

// 8-4-4-4-12 lower-case hexadecimal digits.
bool read_uuid(std::string_view text, uint64_t& high, uint64_t& low) {
    if (text.size() != 36) return false;
    const char* at = text.data();
    if (at[8] != '-' || at[13] != '-' || at[18] != '-' || at[23] != '-') return false;
    return read_digits(load(at), join(at + 9, at + 14), high) &&
           read_digits(join(at + 19, at + 24), load(at + 28), low);
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
