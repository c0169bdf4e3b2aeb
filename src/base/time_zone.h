#pragma once

#include <absl/time/civil_time.h>
#include <absl/time/time.h>

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace berth::base {

// The calendar of a place, from the system's database.
class TimeZone {
public:
    // UTC.
    TimeZone() : zone_(absl::UTCTimeZone()) {}
    // "Europe/Berlin". nullopt: the database has no such place.
    static std::optional<TimeZone> find(std::string_view name);

    absl::CivilMinute civil(Time time) const;
    // The first moment of a day, as clocks show it there.
    Time begin_of(absl::CivilDay day) const;

private:
    absl::TimeZone zone_;
};

}  // namespace berth::base
