#include "model/cron.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <vector>

#include "model/times.h"

namespace berth::model {
namespace {

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr int kYears = 5;

struct Word {
    std::string_view word, fields;
};
constexpr std::array<Word, 7> kWords{{{"@yearly", "0 0 1 1 *"},
                                      {"@annually", "0 0 1 1 *"},
                                      {"@monthly", "0 0 1 * *"},
                                      {"@weekly", "0 0 * * 0"},
                                      {"@daily", "0 0 * * *"},
                                      {"@midnight", "0 0 * * *"},
                                      {"@hourly", "0 * * * *"}}};

std::vector<std::string_view> parts_of(std::string_view text, char by) {
    std::vector<std::string_view> out;
    while (true) {
        const auto end = std::min(text.find(by), text.size());
        out.push_back(text.substr(0, end));
        if (end == text.size()) return out;
        text.remove_prefix(end + 1);
    }
}

std::string lowercase(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
}

Error bad_field(std::string_view what, std::string_view text) {
    return base::bad_request(fmt::format("{}: {}", what, text));
}

}  // namespace

struct CronSchedule::Range {
    int least, most;
    std::span<const std::string_view> names = {};

    Result<int> value(std::string_view text) const {
        const auto named = std::find(names.begin(), names.end(), lowercase(text));
        if (named != names.end()) return static_cast<int>(named - names.begin()) + least;
        int number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc() || end != text.data() + text.size()) return bad_field("failed to parse number", text);
        if (number < least) return bad_field(fmt::format("value below minimum ({})", least), text);
        if (number > most) return bad_field(fmt::format("value above maximum ({})", most), text);
        return number;
    }
};

// "*/15", "1-5", "mon,wed", "10/20": from, to and step of each part.
Result<CronSchedule::Field> CronSchedule::parse_field(std::string_view text, const Range& range) {
    Field out;
    for (const auto part : parts_of(text, ',')) {
        const auto steps = parts_of(part, '/');
        if (steps.size() > 2) return bad_field("too many slashes", part);
        const auto ends = parts_of(steps[0], '-');
        if (ends.size() > 2) return bad_field("too many hyphens", part);
        const bool star = steps[0] == "*" || steps[0] == "?";
        const int from = star ? range.least : TRY(range.value(ends[0]));
        int to = star || (steps.size() == 2 && ends.size() == 1) ? range.most : from;
        if (ends.size() == 2) to = TRY(range.value(ends[1]));
        if (from > to) return bad_field("beginning of range is beyond its end", part);
        int step = 1;
        if (steps.size() == 2) step = TRY((Range{1, 1000}.value(steps[1])));
        out.star = out.star || (star && step == 1);
        for (int i = from; i <= to; i += step) out.values |= uint64_t{1} << i;
    }
    return out;
}

Result<CronSchedule> CronSchedule::parse_fields(std::string_view text) {
    std::vector<std::string_view> fields = parts_of(text, ' ');
    std::erase(fields, "");
    if (fields.size() != 5) return bad_field(fmt::format("expected exactly 5 fields, found {}", fields.size()), text);
    CronSchedule out;
    out.minute_ = TRY(parse_field(fields[0], {0, 59}));
    out.hour_ = TRY(parse_field(fields[1], {0, 23}));
    out.day_ = TRY(parse_field(fields[2], {1, 31}));
    out.month_ = TRY(parse_field(fields[3], {1, 12, kMonths}));
    out.weekday_ = TRY(parse_field(fields[4], {0, 6, kWeekdays}));
    return out;
}

Result<CronSchedule> CronSchedule::parse(std::string_view text) {
    if (!text.starts_with('@')) return parse_fields(text);
    for (const auto& [word, fields] : kWords) {
        if (text == word) return parse_fields(fields);
    }
    constexpr std::string_view kEvery = "@every ";
    if (!text.starts_with(kEvery)) return bad_field("unrecognized descriptor", text);
    CronSchedule out;
    out.every_ = std::max<base::Duration>(TRY(parse_duration(text.substr(kEvery.size()))), std::chrono::seconds(1));
    return out;
}

// Where both are given, one of them is enough.
bool CronSchedule::has_day(absl::CivilDay day) const {
    const bool of_month = day_.has(static_cast<int>(day.day()));
    const bool of_week = weekday_.has((static_cast<int>(absl::GetWeekday(day)) + 1) % 7);  // Monday is their first
    return day_.star || weekday_.star ? of_month && of_week : of_month || of_week;
}

// By moments, not by the names of hours: an hour that clocks repeat is due twice where every hour is, one that they
// leave out is not there.
std::optional<base::Time> CronSchedule::next(base::Time after, const base::TimeZone& zone) const {
    constexpr base::Duration kSecond = std::chrono::seconds(1), kMinute = std::chrono::minutes(1);
    if (every_ != base::Duration::zero()) {
        const base::Time due = after + every_;
        return base::Time{due.nanos - due.nanos % kSecond.count()};
    }
    base::Time at{after.nanos - after.nanos % kMinute.count() + kMinute.count()};
    const auto last = zone.civil(at).year() + kYears;
    while (true) {
        const absl::CivilMinute shown = zone.civil(at);
        if (shown.year() > last) return std::nullopt;
        if (!month_.has(shown.month())) {
            at = zone.begin_of(absl::CivilDay(absl::CivilMonth(shown) + 1));
        } else if (!has_day(absl::CivilDay(shown))) {
            at = zone.begin_of(absl::CivilDay(shown) + 1);
        } else if (!hour_.has(shown.hour())) {
            at = at + kMinute * (60 - shown.minute());
        } else if (!minute_.has(shown.minute())) {
            at = at + kMinute;
        } else {
            return at;
        }
    }
}

}  // namespace berth::model
