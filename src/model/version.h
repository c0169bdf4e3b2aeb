#pragma once

#include <string_view>

namespace berth::model {

// The Kubernetes release whose API we speak; kubectl compares it with its own.
inline constexpr std::string_view kServedMinor = "32";
inline constexpr std::string_view kServedVersion = "v1.32.0+berth";

}  // namespace berth::model
