#pragma once

namespace berth::base {

// Says where and what on stderr, then aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace berth::base

// For our own bugs only; stays on in release. Bad input never reaches a CHECK.
#define CHECK(condition)                                                 \
    do {                                                                 \
        if (!(condition)) [[unlikely]] {                                 \
            ::berth::base::check_failed(__FILE__, __LINE__, #condition); \
        }                                                                \
    } while (false)
