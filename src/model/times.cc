#include "model/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/int128.h"

namespace berth::model {
namespace {

using base::bad_request;
using base::Duration;
using base::Time;

constexpr int64_t kSecond = 1'000'000'000;

// Reads a text from the left; once something was not as asked, ok() stays false.
class Scanner {
public:
    explicit Scanner(std::string_view text) : rest_(text) {}

    int number(size_t digits) {
        int value = 0;
        for (size_t i = 0; i < digits; ++i) {
            if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') {
                ok_ = false;
                return 0;
            }
            value = value * 10 + (rest_.front() - '0');
            rest_.remove_prefix(1);
        }
        return value;
    }
    void expect(char c) {
        if (!accept(c)) ok_ = false;
    }
    bool accept(char c) {
        if (!rest_.starts_with(c)) return false;
        rest_.remove_prefix(1);
        return true;
    }
    // Digits after the point, in nanos; what is finer is dropped.
    int64_t fraction() {
        int64_t nanos = 0;
        size_t digits = 0;
        for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; ++digits) {
            if (digits < 9) nanos = nanos * 10 + (rest_.front() - '0');
            rest_.remove_prefix(1);
        }
        if (digits == 0) ok_ = false;
        for (; digits < 9; ++digits) nanos *= 10;
        return nanos;
    }
    bool ok() const { return ok_; }
    bool at_end() const { return rest_.empty(); }

private:
    std::string_view rest_;
    bool ok_ = true;
};

std::optional<std::chrono::sys_days> read_date(Scanner& in) {
    const int year = in.number(4);
    in.expect('-');
    const int month = in.number(2);
    in.expect('-');
    const int day = in.number(2);
    const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day)));
    if (!in.ok() || !date.ok()) return std::nullopt;
    return std::chrono::sys_days(date);
}

// Seconds east of UTC: Z, +01:30, -08:00.
std::optional<int64_t> read_offset(Scanner& in) {
    if (in.accept('Z')) return 0;
    const bool west = in.accept('-');
    if (!west) in.expect('+');
    const int hours = in.number(2);
    in.expect(':');
    const int minutes = in.number(2);
    if (!in.ok() || hours > 23 || minutes > 59) return std::nullopt;
    return (west ? -1 : 1) * (hours * 3600 + minutes * 60);
}

std::optional<Time> read_time(std::string_view text) {
    Scanner in(text);
    const auto date = read_date(in);
    in.expect('T');
    const int hour = in.number(2);
    in.expect(':');
    const int minute = in.number(2);
    in.expect(':');
    const int second = in.number(2);
    const int64_t nanos = in.accept('.') ? in.fraction() : 0;
    const auto offset = read_offset(in);
    if (!in.ok() || !in.at_end() || !date || !offset || hour > 23 || minute > 59 || second > 59) return std::nullopt;
    const int64_t seconds =
        date->time_since_epoch().count() * int64_t{86400} + hour * 3600 + minute * 60 + second - *offset;
    const int128 exact = static_cast<int128>(seconds) * kSecond + nanos;
    constexpr int128 kFirst = std::numeric_limits<int64_t>::min();
    constexpr int128 kLast = std::numeric_limits<int64_t>::max();
    return Time{static_cast<int64_t>(std::clamp(exact, kFirst, kLast))};
}

struct Calendar {
    int year, month, day, hour, minute, second, nanos;
};

Calendar calendar_of(Time time) {
    using namespace std::chrono;
    // In whole seconds first: midnight before the first instant is not a Time.
    const auto second = floor<seconds>(sys_time<nanoseconds>(nanoseconds(time.nanos)));
    const auto day = floor<days>(second);
    const year_month_day date(day);
    const hh_mm_ss<seconds> clock(second - day);
    const int64_t rest = time.nanos % kSecond;
    return {static_cast<int>(date.year()),
            static_cast<int>(static_cast<unsigned>(date.month())),
            static_cast<int>(static_cast<unsigned>(date.day())),
            static_cast<int>(clock.hours().count()),
            static_cast<int>(clock.minutes().count()),
            static_cast<int>(clock.seconds().count()),
            static_cast<int>(rest < 0 ? rest + kSecond : rest)};
}

// Zeros in front; a number that is too long stays whole.
void append_number(std::string& out, int value, int digits) {
    char text[12];
    int at = sizeof(text);
    for (; value > 0 || digits > 0; value /= 10, --digits) text[--at] = static_cast<char>('0' + value % 10);
    out.append(text + at, sizeof(text) - static_cast<size_t>(at));
}

// Up to the seconds. By hand: an object that is written has half a dozen of them.
std::string until_seconds(const Calendar& c) {
    std::string out;
    out.reserve(sizeof("2026-11-15T22:00:00.000000Z"));
    append_number(out, c.year, 4);
    for (const auto& [mark, value] :
         {std::pair('-', c.month), {'-', c.day}, {'T', c.hour}, {':', c.minute}, {':', c.second}}) {
        out += mark;
        append_number(out, value, 2);
    }
    return out;
}

struct Unit {
    std::string_view name;
    int64_t nanos;
};
// Longer names first where one begins another.
constexpr Unit kUnits[] = {{"ns", 1},         {"us", 1'000},  {"\xc2\xb5s", 1'000}, {"\xce\xbcs", 1'000},
                           {"ms", 1'000'000}, {"s", kSecond}, {"m", 60 * kSecond},  {"h", 3600 * kSecond}};

constexpr uint64_t kMagnitudeLimit = uint64_t{1} << 63;

// One number with its unit, in nanos; nothing when it is malformed or beyond 2^63.
std::optional<uint64_t> read_part(std::string_view& rest) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    uint128 whole = 0;
    size_t digits = 0;
    for (; digits < rest.size() && is_digit(rest[digits]); ++digits) {
        whole = whole * 10 + static_cast<uint128>(rest[digits] - '0');
        if (whole > kMagnitudeLimit) return std::nullopt;
    }
    rest.remove_prefix(digits);
    std::string_view fraction;
    if (rest.starts_with('.')) {
        rest.remove_prefix(1);
        const auto end = std::find_if_not(rest.begin(), rest.end(), is_digit);
        fraction = rest.substr(0, static_cast<size_t>(end - rest.begin()));
        rest.remove_prefix(fraction.size());
    }
    if (digits == 0 && fraction.empty()) return std::nullopt;
    const auto name = rest.substr(
        0, static_cast<size_t>(std::find_if(rest.begin(), rest.end(), [&](char c) { return c == '.' || is_digit(c); }) -
                               rest.begin()));
    const auto unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& u) { return u.name == name; });
    if (unit == std::end(kUnits)) return std::nullopt;
    rest.remove_prefix(name.size());

    uint128 nanos = whole * static_cast<uint128>(unit->nanos);
    uint128 part = 0;
    uint128 scale = 1;
    for (const char digit : fraction.substr(0, 18)) {
        part = part * 10 + static_cast<uint128>(digit - '0');
        scale *= 10;
    }
    nanos += part * static_cast<uint128>(unit->nanos) / scale;
    if (nanos > kMagnitudeLimit) return std::nullopt;
    return static_cast<uint64_t>(nanos);
}

std::optional<Duration> read_duration(std::string_view rest) {
    const bool negative = rest.starts_with('-');
    if (negative || rest.starts_with('+')) rest.remove_prefix(1);
    if (rest == "0") return Duration(0);
    if (rest.empty()) return std::nullopt;
    uint64_t total = 0;
    while (!rest.empty()) {
        const auto part = read_part(rest);
        if (!part || *part > kMagnitudeLimit - total) return std::nullopt;
        total += *part;
    }
    if (negative) return Duration(static_cast<int64_t>(-total));
    if (total == kMagnitudeLimit) return std::nullopt;
    return Duration(static_cast<int64_t>(total));
}

// value / 10^digits without trailing zeros: (1500, 3) -> "1.5".
std::string decimal(uint64_t value, int digits) {
    std::string fraction;
    for (int i = 0; i < digits; ++i, value /= 10)
        fraction.insert(fraction.begin(), static_cast<char>('0' + value % 10));
    fraction.erase(fraction.find_last_not_of('0') + 1);
    return fraction.empty() ? std::to_string(value) : fmt::format("{}.{}", value, fraction);
}

}  // namespace

Result<Time> parse_time(std::string_view text) {
    const auto time = read_time(text);
    if (!time) {
        return bad_request(
            fmt::format("\"{}\" is not an RFC 3339 time: write it as in 2026-11-15T22:00:00Z", text.substr(0, 64)));
    }
    return *time;
}

std::string time_text(Time time) {
    return until_seconds(calendar_of(time)) + 'Z';
}

std::string micro_time_text(Time time) {
    const auto c = calendar_of(time);
    std::string out = until_seconds(c) + '.';
    append_number(out, c.nanos / 1000, 6);
    return out + 'Z';
}

Result<Duration> parse_duration(std::string_view text) {
    const auto duration = read_duration(text);
    if (!duration)
        return bad_request(
            fmt::format("\"{}\" is not a duration: write it as in 1h30m, 45s or 300ms", text.substr(0, 64)));
    return *duration;
}

std::string duration_text(Duration duration) {
    const bool negative = duration.count() < 0;
    const uint64_t nanos =
        negative ? -static_cast<uint64_t>(duration.count()) : static_cast<uint64_t>(duration.count());
    const std::string sign = negative ? "-" : "";
    if (nanos == 0) return "0s";
    if (nanos < 1'000) return fmt::format("{}{}ns", sign, nanos);
    if (nanos < 1'000'000) return fmt::format("{}{}µs", sign, decimal(nanos, 3));
    if (nanos < kSecond) return fmt::format("{}{}ms", sign, decimal(nanos, 6));
    const uint64_t minutes = nanos / (60 * kSecond);
    const std::string seconds = decimal(nanos % (60 * kSecond), 9);
    if (minutes == 0) return fmt::format("{}{}s", sign, seconds);
    if (minutes < 60) return fmt::format("{}{}m{}s", sign, minutes, seconds);
    return fmt::format("{}{}h{}m{}s", sign, minutes / 60, minutes % 60, seconds);
}

}  // namespace berth::model
