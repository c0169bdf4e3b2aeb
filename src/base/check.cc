#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace berth::base {

void check_failed(const char* file, int line, const char* condition) {
    std::fprintf(stderr, "berth: bug at %s:%d: CHECK(%s) failed\n", file, line, condition);
    std::abort();
}

}  // namespace berth::base
