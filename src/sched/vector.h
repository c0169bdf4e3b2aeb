#pragma once

// Two copies of a loop, chosen when the program starts. g++ 12's copies crash under ThreadSanitizer.
#if defined(BERTH_TSAN) || !defined(__x86_64__) || defined(__clang__)
#define BERTH_VECTOR
#else
#define BERTH_VECTOR __attribute__((target_clones("avx2", "default"), optimize("O3", "no-trapping-math")))
#endif
