#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

// Times and durations as objects write them.
namespace berth::model {

// RFC 3339, "2026-11-15T22:00:00Z", with fractions of a second and offsets; years 0000 to 9999. base::Time reaches from
// 1677 to 2262: what lies outside becomes its first or last instant, so "never" stays later than everything else.
Result<base::Time> parse_time(std::string_view text);
// In UTC and whole seconds, as metav1.Time.
std::string time_text(base::Time time);
// In UTC with six digits of a second, as metav1.MicroTime.
std::string micro_time_text(base::Time time);

// As Go reads durations: "1h30m", "-5s", "300ms", "1.5h", "0".
Result<base::Duration> parse_duration(std::string_view text);
// As Go prints them: "1h30m0s", "300ms", "0s".
std::string duration_text(base::Duration duration);

}  // namespace berth::model
