#include "model/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace berth::model {
namespace {

using Format = Quantity::Format;
using base::bad_request;

constexpr int32_t kNano = -9;
constexpr int128 kMax = static_cast<int128>(~static_cast<uint128>(0) >> 1);
// Larger values stop here. SI suffixes end at E, so the exponent is also the number of digits that text() may print.
constexpr int32_t kMaxScale = 1000;
constexpr int128 kMaxBinaryNanos = static_cast<int128>(std::numeric_limits<int64_t>::max()) * 1'000'000'000;

struct Suffix {
    std::string_view text;
    int32_t exponent;
};
constexpr std::array<Suffix, 10> kDecimal{
    {{"n", -9}, {"u", -6}, {"m", -3}, {"", 0}, {"k", 3}, {"M", 6}, {"G", 9}, {"T", 12}, {"P", 15}, {"E", 18}}};
constexpr std::array<Suffix, 6> kBinary{{{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60}}};

// A text taken apart: sign, digits before and after the point, what the suffix means.
struct Parts {
    bool negative = false;
    std::string_view whole;     // without leading zeros
    std::string_view fraction;  // as written
    bool has_digits = false;
    Format format = Format::DecimalSI;
    int32_t exponent = 0;  // of 2 for BinarySI, else of 10
};

std::string_view take_digits(std::string_view& rest) {
    const size_t n = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto digits = rest.substr(0, n);
    rest.remove_prefix(n);
    return digits;
}

std::optional<int32_t> parse_exponent(std::string_view text) {
    if (text.starts_with('+')) {
        text.remove_prefix(1);
        if (text.starts_with('-')) return std::nullopt;
    }
    int32_t exponent = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), exponent);
    if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return exponent;
}

bool read_suffix(std::string_view suffix, Parts& parts) {
    for (const auto& known : kDecimal) {
        if (suffix == known.text) {
            parts.exponent = known.exponent;
            return true;
        }
    }
    for (const auto& known : kBinary) {
        if (suffix == known.text) {
            parts.format = Format::BinarySI;
            parts.exponent = known.exponent;
            return true;
        }
    }
    if (!suffix.starts_with('e') && !suffix.starts_with('E')) return false;
    const auto exponent = parse_exponent(suffix.substr(1));
    if (!exponent) return false;
    parts.format = Format::DecimalExponent;
    parts.exponent = *exponent;
    return true;
}

// Kubernetes reads a missing number as 0 ("Ki", "+"), but not before an exponent below nano nor before Pi and Ei.
bool needs_digits(const Parts& parts) {
    return parts.format == Format::BinarySI ? parts.exponent >= 50 : parts.exponent < kNano;
}

std::optional<Parts> take_apart(std::string_view text) {
    if (text.empty()) return std::nullopt;
    Parts parts;
    parts.negative = text.front() == '-';
    if (text.front() == '-' || text.front() == '+') text.remove_prefix(1);
    parts.whole = take_digits(text);
    parts.has_digits = !parts.whole.empty();
    parts.whole.remove_prefix(std::min(parts.whole.find_first_not_of('0'), parts.whole.size()));
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        parts.fraction = take_digits(text);
        parts.has_digits |= !parts.fraction.empty();
    }
    if (!read_suffix(text, parts)) return std::nullopt;
    if (!parts.has_digits && needs_digits(parts)) return std::nullopt;
    return parts;
}

// A magnitude: mantissa x 10^scale.
struct Scaled {
    int128 mantissa = 0;
    int32_t scale = kNano;
};

// m / 10^digits, away from zero.
int128 shift_right(int128 m, int32_t digits) {
    bool rest = false;
    for (; digits > 0 && m != 0; --digits) {
        rest |= m % 10 != 0;
        m /= 10;
    }
    return m + (rest ? 1 : 0);
}

// The smallest scale whose mantissa fits.
Scaled normal(int128 mantissa, int64_t scale) {
    if (mantissa == 0) return {};
    while (scale > kNano && mantissa <= kMax / 10) {
        mantissa *= 10;
        --scale;
    }
    if (scale > kMaxScale) return {kMax, kMaxScale};
    return {mantissa, static_cast<int32_t>(scale)};
}

// The digits of whole and fraction as one number times 10^exponent: what is below nano or beyond 38 digits is rounded
// up.
Scaled from_decimal(const Parts& parts) {
    std::string digits(parts.whole);
    digits += parts.fraction;
    int64_t exponent = static_cast<int64_t>(parts.exponent) - static_cast<int64_t>(parts.fraction.size());
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    if (digits.empty()) return {};

    const auto count = static_cast<int64_t>(digits.size());
    const int64_t keep = std::clamp<int64_t>(count + exponent - kNano, 0, count);
    const auto digit = [&digits](int64_t i) { return digits[static_cast<size_t>(i)] - '0'; };
    int128 mantissa = 0;
    int64_t used = 0;
    for (; used < keep && mantissa <= (kMax - digit(used)) / 10; ++used) mantissa = mantissa * 10 + digit(used);
    exponent = keep == 0 ? kNano : exponent + count - used;
    if (digits.find_first_not_of('0', static_cast<size_t>(used)) != std::string::npos) {
        if (mantissa == kMax) {
            mantissa /= 10;
            ++exponent;
        }
        ++mantissa;
    }
    return normal(mantissa, exponent);
}

// whole.fraction x 2^exponent in nanos, rounded up, at most 2^63-1 units.
// The fraction is added digit by digit from the last: sum = (digit x unit + sum) / 10. Each step's rest is below one,
// so it can change no later quotient; it only says that something is left to round up.
Scaled from_binary(const Parts& parts) {
    if (parts.whole.size() > 19) return {kMaxBinaryNanos, kNano};
    const int128 unit = (static_cast<int128>(1) << parts.exponent) * 1'000'000'000;
    bool rest = false;
    int128 sum = 0;
    for (auto digit = parts.fraction.rbegin(); digit != parts.fraction.rend(); ++digit) {
        sum += unit * (*digit - '0');
        rest |= sum % 10 != 0;
        sum /= 10;
    }
    if (rest) ++sum;
    int128 whole = 0;
    for (const char digit : parts.whole) whole = whole * 10 + (digit - '0');
    if (whole > kMaxBinaryNanos / unit) return {kMaxBinaryNanos, kNano};
    return {std::min(whole * unit + sum, kMaxBinaryNanos), kNano};
}

std::string digits_of(uint128 value) {
    std::string digits;
    do {
        digits.push_back(static_cast<char>('0' + static_cast<int>(value % 10)));
        value /= 10;
    } while (value != 0);
    std::reverse(digits.begin(), digits.end());
    return digits;
}

// The largest multiple of 3 as exponent that leaves no fraction. SI suffixes end at E, so there it stays 18.
std::string decimal_text(uint128 magnitude, int32_t scale, Format format) {
    std::string digits = digits_of(magnitude);
    const size_t zeros = digits.size() - 1 - digits.find_last_not_of('0');
    const int64_t exact = scale + static_cast<int64_t>(zeros);
    int64_t exponent = exact - ((exact % 3) + 3) % 3;
    if (format != Format::DecimalExponent) exponent = std::min<int64_t>(exponent, kDecimal.back().exponent);
    digits.resize(digits.size() - zeros);
    digits.append(static_cast<size_t>(exact - exponent), '0');
    if (format == Format::DecimalExponent) return exponent == 0 ? digits : fmt::format("{}e{}", digits, exponent);
    return digits.append(kDecimal[static_cast<size_t>((exponent - kNano) / 3)].text);
}

std::string binary_text(uint128 units) {
    size_t times = 0;
    for (; times < kBinary.size() && units % 1024 == 0; ++times) units /= 1024;
    return digits_of(units).append(times == 0 ? "" : kBinary[times - 1].text);
}

uint128 magnitude_of(int128 value) {
    return value < 0 ? -static_cast<uint128>(value) : static_cast<uint128>(value);
}

int64_t held_at_ends(bool negative, uint128 magnitude) {
    constexpr auto kLargest = static_cast<uint128>(std::numeric_limits<int64_t>::max());
    if (magnitude > kLargest)
        return negative ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
    const auto value = static_cast<int64_t>(magnitude);
    return negative ? -value : value;
}

}  // namespace

Quantity::Quantity(int128 mantissa, int32_t scale, Format format)
    : mantissa_(mantissa), scale_(scale), format_(format) {}

Result<Quantity> Quantity::parse(std::string_view text) {
    const auto parts = take_apart(text);
    if (!parts) {
        const bool longer = text.size() > 64;
        return bad_request(
            fmt::format("\"{}{}\" is not a quantity: write a number with an optional suffix, as in 2, "
                        "1500m, 4Gi or 1e3",
                        text.substr(0, 64), longer ? "..." : ""));
    }
    const Scaled scaled = parts->format == Format::BinarySI ? from_binary(*parts) : from_decimal(*parts);
    const bool below_one = scaled.scale == kNano && scaled.mantissa > 0 && scaled.mantissa < 1'000'000'000;
    const Format format = parts->format == Format::BinarySI && below_one ? Format::DecimalSI : parts->format;
    return Quantity(parts->negative ? -scaled.mantissa : scaled.mantissa, scaled.scale, format);
}

Quantity Quantity::from_value(int64_t units, Format format) {
    return Quantity(static_cast<int128>(units) * 1'000'000'000, kNano, format);
}

Quantity Quantity::from_milli(int64_t thousandths, Format format) {
    return Quantity(static_cast<int128>(thousandths) * 1'000'000, kNano, format);
}

std::string Quantity::text() const {
    if (mantissa_ == 0) return "0";
    const uint128 magnitude = magnitude_of(mantissa_);
    const std::string sign = mantissa_ < 0 ? "-" : "";
    // Below 1Ki and with a fraction a binary suffix would round; beyond 2^63-1 it would be capped when read again.
    const bool binary = format_ == Format::BinarySI && scale_ == kNano && magnitude % 1'000'000'000 == 0 &&
                        magnitude / 1'000'000'000 >= 1024 && magnitude <= static_cast<uint128>(kMaxBinaryNanos);
    if (binary) return sign + binary_text(magnitude / 1'000'000'000);
    return sign + decimal_text(magnitude, scale_, format_);
}

int64_t Quantity::rounded_to(int32_t scale) const {
    const bool negative = mantissa_ < 0;
    if (scale_ > scale) return held_at_ends(negative, mantissa_ == 0 ? 0 : ~static_cast<uint128>(0));
    return held_at_ends(negative, static_cast<uint128>(shift_right(negative ? -mantissa_ : mantissa_, scale - scale_)));
}

int64_t Quantity::value() const {
    return rounded_to(0);
}

int64_t Quantity::milli() const {
    return rounded_to(-3);
}

// A larger scale means a larger magnitude, since a smaller one would not have fitted.
std::strong_ordering Quantity::operator<=>(const Quantity& other) const {
    if (scale_ == other.scale_ || is_negative() != other.is_negative()) return mantissa_ <=> other.mantissa_;
    const auto by_magnitude = scale_ <=> other.scale_;
    return is_negative() ? 0 <=> by_magnitude : by_magnitude;
}

bool Quantity::operator==(const Quantity& other) const {
    return mantissa_ == other.mantissa_ && scale_ == other.scale_;
}

Quantity Quantity::operator-() const {
    return Quantity(-mantissa_, scale_, format_);
}

Quantity& Quantity::operator+=(const Quantity& other) {
    if (is_zero()) format_ = other.format_;
    int32_t scale = std::max(scale_, other.scale_);
    const auto aligned = [&scale](const Quantity& q) {
        const int128 magnitude = shift_right(q.is_negative() ? -q.mantissa_ : q.mantissa_, scale - q.scale_);
        return q.is_negative() ? -magnitude : magnitude;
    };
    const int128 a = aligned(*this);
    const int128 b = aligned(other);
    int128 sum = 0;
    if (__builtin_add_overflow(a, b, &sum) || sum < -kMax) {
        // Both have the same sign and at least 38 digits.
        const int128 tenth = a / 10 + b / 10;
        const int128 rest = a % 10 + b % 10;
        sum = tenth + (rest > 0 ? (rest + 9) / 10 : (rest - 9) / 10);
        ++scale;
    }
    const Scaled result = normal(sum < 0 ? -sum : sum, scale);
    mantissa_ = sum < 0 ? -result.mantissa : result.mantissa;
    scale_ = result.scale;
    return *this;
}

Quantity& Quantity::operator-=(const Quantity& other) {
    return *this += -other;
}

}  // namespace berth::model
