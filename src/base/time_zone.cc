#include "base/time_zone.h"

#include <algorithm>
#include <string>

namespace berth::base {
namespace {

// A name is part of a path.
bool is_name(std::string_view name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '+' || c == '/';
    };
    return !name.empty() && name.size() < 100 && name.front() != '/' && std::all_of(name.begin(), name.end(), plain);
}

}  // namespace

std::optional<TimeZone> TimeZone::find(std::string_view name) {
    TimeZone found;
    if (!is_name(name) || !absl::LoadTimeZone(std::string(name), &found.zone_)) return std::nullopt;
    return found;
}

absl::CivilMinute TimeZone::civil(Time time) const {
    return absl::CivilMinute(zone_.At(absl::FromUnixNanos(time.nanos)).cs);
}

Time TimeZone::begin_of(absl::CivilDay day) const {
    return {absl::ToUnixNanos(absl::FromCivil(absl::CivilSecond(day), zone_))};
}

}  // namespace berth::base
