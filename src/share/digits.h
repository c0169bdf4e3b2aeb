#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace berth::share {

// Sorts by a key of 64 bits, of which those below `lowest` are the same or stand in order already; equal ones stay in
// their order. Eleven bits at a time: four times as fast as comparing where there are many. Few have the upper 33 bits
// in common, so these alone are compared by the rest.
template <class T, class Key>
void sort_by_digits(std::vector<T>& items, std::vector<T>& other, int lowest, Key key) {
    constexpr size_t kFew = 256, kDigits = 1 << 11;
    if (items.size() < kFew) {
        std::stable_sort(items.begin(), items.end(), [&](const T& a, const T& b) { return key(a) < key(b); });
        return;
    }
    other.resize(items.size());
    constexpr int kUpper = 31;
    for (int shift = std::max(lowest, kUpper); shift < 64; shift += 11) {
        std::array<uint32_t, kDigits> places{};
        const auto digit = [&](const T& item) { return (key(item) >> shift) & (kDigits - 1); };
        for (const T& item : items) ++places[digit(item)];
        if (places[digit(items.front())] == items.size()) continue;
        uint32_t place = 0;
        for (uint32_t& count : places) place += std::exchange(count, place);
        for (const T& item : items) other.data()[places[digit(item)]++] = item;
        items.swap(other);
    }
    if (lowest >= kUpper) return;
    const auto by_key = [&](const T& a, const T& b) { return key(a) < key(b); };
    for (auto at = items.begin(); at != items.end();) {
        const uint64_t upper = key(*at) >> kUpper;
        auto end = at + 1;
        while (end != items.end() && key(*end) >> kUpper == upper) ++end;
        if (end - at > 1) std::stable_sort(at, end, by_key);
        at = end;
    }
}

}  // namespace berth::share
