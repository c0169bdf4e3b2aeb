#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/int128.h"
#include "base/result.h"

namespace berth::model {

// An amount as Kubernetes writes it: "2", "1500m", "4Gi", "1e3". Exact to the nano; nothing wraps.
//
// The value is mantissa x 10^scale, and the scale is the smallest one, from -9 up, whose mantissa fits 128 bits. So
// every value below 1.7e29 is a whole number of nanos, and a larger one keeps 38 digits, rounded away from zero. E.g.
// "1.5" is 1500000000 x 10^-9; "1e30" is 10^38 x 10^-8.
class Quantity {
public:
    // The family of suffixes that an amount was written with, and is printed with again.
    enum class Format : uint8_t { DecimalSI, BinarySI, DecimalExponent };

    Quantity() = default;

    // Amounts below a nano are rounded away from zero to a nano; binary ones are capped at 2^63-1.
    static Result<Quantity> parse(std::string_view text);
    static Quantity from_value(int64_t units, Format format = Format::DecimalSI);
    static Quantity from_milli(int64_t thousandths, Format format = Format::DecimalSI);

    // The canonical form: no fraction, the largest suffix that loses nothing. parse(text()) equals *this.
    std::string text() const;

    // Whole units and thousandths, rounded away from zero, held at the ends of int64.
    int64_t value() const;
    int64_t milli() const;

    Format format() const { return format_; }
    bool is_zero() const { return mantissa_ == 0; }
    bool is_negative() const { return mantissa_ < 0; }

    // Values compare by amount: 1 == 1000m == 1e0.
    std::strong_ordering operator<=>(const Quantity& other) const;
    bool operator==(const Quantity& other) const;

    // Exact while the sum has at most 38 digits, then rounded away from zero. Zero takes the format of what is added.
    Quantity& operator+=(const Quantity& other);
    Quantity& operator-=(const Quantity& other);
    Quantity operator-() const;
    friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }
    friend Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }

private:
    Quantity(int128 mantissa, int32_t scale, Format format);
    int64_t rounded_to(int32_t scale) const;

    int128 mantissa_ = 0;
    int32_t scale_ = -9;
    Format format_ = Format::DecimalSI;
};

}  // namespace berth::model

namespace berth {
using model::Quantity;
}  // namespace berth
