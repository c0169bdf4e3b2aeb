#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace berth::share {

// Sorts by a key of 64 bits, of which those below `lowest` are the same or stand in order already; equal ones stay in
// their order. Eleven bits at a time: four times as fast as comparing where there are many.
template <class T, class Key>
void sort_by_digits(std::vector<T>& items, std::vector<T>& other, int lowest, Key key) {
    constexpr size_t kFew = 256, kDigits = 1 << 11;
    if (items.size() < kFew) {
        std::stable_sort(items.begin(), items.end(), [&](const T& a, const T& b) { return key(a) < key(b); });
        return;
    }
    other.resize(items.size());
    for (int shift = lowest; shift < 64; shift += 11) {
        std::array<uint32_t, kDigits> places{};
        const auto digit = [&](const T& item) { return (key(item) >> shift) & (kDigits - 1); };
        for (const T& item : items) ++places[digit(item)];
        if (places[digit(items.front())] == items.size()) continue;
        uint32_t place = 0;
        for (uint32_t& count : places) place += std::exchange(count, place);
        for (const T& item : items) other.data()[places[digit(item)]++] = item;
        items.swap(other);
    }
}

}  // namespace berth::share
