#pragma once

#include <string>

#include "share/problem.h"

namespace berth::share {

// What a consumer has, as far as whoever wants to start is concerned.
struct Standing {
    const Resources& used;
    const Resources& in_flight;  // granted, and not seen to be used yet
    const Resources& deserved;
    const Resources& hard;  // a missing key is infinite
    int64_t pods = 0;       // there or granted
};

// Why a pod of this size may not start: for every key that it uses, used + in flight + pod <= deserved, and <= hard.
// Empty: it may.
std::string refusal(const Standing& standing, const Resources& size);

}  // namespace berth::share
