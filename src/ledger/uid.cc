#include "ledger/uid.h"

#include <absl/hash/hash.h>
#include <fmt/format.h>

#include <array>
#include <functional>

namespace berth::ledger {
namespace {

constexpr int8_t digit(char c) {
    if (c >= '0' && c <= '9') return static_cast<int8_t>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<int8_t>(c - 'a' + 10);
    return -1;
}

constexpr std::array<int8_t, 256> kDigits = [] {
    std::array<int8_t, 256> digits{};
    for (size_t i = 0; i < digits.size(); ++i) digits[i] = digit(static_cast<char>(i));
    return digits;
}();

// So many digits; negative: some are none.
int64_t read_digits(const char* text, size_t count) {
    uint64_t digits = 0;
    int64_t bad = 0;
    for (size_t i = 0; i < count; ++i) {
        const int8_t value = kDigits[static_cast<uint8_t>(text[i])];
        bad |= value;
        digits = digits << 4 | (static_cast<uint64_t>(value) & 15);
    }
    return bad < 0 ? bad : static_cast<int64_t>(digits);
}

// 8-4-4-4-12 lower-case hexadecimal digits.
bool read_uuid(std::string_view text, uint64_t& high, uint64_t& low) {
    if (text.size() != 36) return false;
    const char* at = text.data();
    if (at[8] != '-' || at[13] != '-' || at[18] != '-' || at[23] != '-') return false;
    const int64_t parts[] = {read_digits(at, 8), read_digits(at + 9, 4), read_digits(at + 14, 4),
                             read_digits(at + 19, 4), read_digits(at + 24, 12)};
    if ((parts[0] | parts[1] | parts[2] | parts[3] | parts[4]) < 0) return false;
    high = static_cast<uint64_t>(parts[0] << 32 | parts[1] << 16 | parts[2]);
    low = static_cast<uint64_t>(parts[3]) << 48 | static_cast<uint64_t>(parts[4]);
    return true;
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
