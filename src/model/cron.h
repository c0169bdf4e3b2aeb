#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/time_zone.h"

namespace berth::model {

// When a CronJob is due: five fields, a word like @daily, or @every with a duration.
class CronSchedule {
public:
    static Result<CronSchedule> parse(std::string_view text);

    // The first time after this one; nullopt: none in five years.
    std::optional<base::Time> next(base::Time after, const base::TimeZone& zone) const;

private:
    // Bit i: the value i. A field that is a star says nothing about the day where the other one does.
    struct Field {
        uint64_t values = 0;
        bool star = false;
        bool has(int value) const { return (values >> value & 1) != 0; }
    };
    struct Range;
    static Result<Field> parse_field(std::string_view text, const Range& range);
    static Result<CronSchedule> parse_fields(std::string_view text);
    bool has_day(absl::CivilDay day) const;

    Field minute_, hour_, day_, month_, weekday_;
    base::Duration every_{};  // not 0: the fields do not count
};

}  // namespace berth::model
