#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "model/cpu_list.h"

namespace berth::ledger {

// A set of CPUs by their ids.
class CpuBits {
public:
    CpuBits() = default;
    explicit CpuBits(const model::CpuIds& cpus) {
        for (const int32_t cpu : cpus) add(cpu);
    }

    void add(int32_t cpu) { grown(static_cast<size_t>(cpu) / 64) |= uint64_t{1} << (cpu % 64); }
    bool has(int32_t cpu) const { return ((word(static_cast<size_t>(cpu) / 64) >> (cpu % 64)) & 1) != 0; }
    void add(const CpuBits& other) {
        for (size_t i = 0; i < other.words(); ++i) grown(i) |= other.word(i);
    }
    void remove(const CpuBits& other) {
        for (size_t i = 0; i < words(); ++i) grown(i) &= ~other.word(i);
    }
    void keep(const CpuBits& other) {
        for (size_t i = 0; i < words(); ++i) grown(i) &= other.word(i);
    }
    CpuBits without(const CpuBits& other) const {
        CpuBits out = *this;
        out.remove(other);
        return out;
    }
    CpuBits within(const CpuBits& other) const {
        CpuBits out = *this;
        out.keep(other);
        return out;
    }
    bool covers(const CpuBits& other) const {
        for (size_t i = 0; i < other.words(); ++i) {
            if ((other.word(i) & ~word(i)) != 0) return false;
        }
        return true;
    }
    bool meets(const CpuBits& other) const {
        for (size_t i = 0; i < words(); ++i) {
            if ((other.word(i) & word(i)) != 0) return true;
        }
        return false;
    }
    bool empty() const { return first() < 0; }
    int64_t count() const {
        int64_t sum = 0;
        for (size_t i = 0; i < words(); ++i) sum += std::popcount(word(i));
        return sum;
    }
    // -1: it is empty.
    int32_t first() const {
        for (size_t i = 0; i < words(); ++i) {
            if (word(i) != 0) return static_cast<int32_t>(i * 64) + std::countr_zero(word(i));
        }
        return -1;
    }
    model::CpuIds ids() const {
        model::CpuIds out;
        for (size_t i = 0; i < words(); ++i) {
            for (uint64_t left = word(i); left != 0; left &= left - 1) {
                out.push_back(static_cast<int32_t>(i * 64) + std::countr_zero(left));
            }
        }
        return out;
    }
    bool operator==(const CpuBits& other) const { return covers(other) && other.covers(*this); }

private:
    static constexpr size_t kNear = 2;  // 128 CPUs without memory of their own

    size_t words() const { return kNear + far_.size(); }
    uint64_t word(size_t i) const { return i < kNear ? near_[i] : i - kNear < far_.size() ? far_[i - kNear] : 0; }
    uint64_t& grown(size_t i) {
        if (i < kNear) return near_[i];
        if (far_.size() <= i - kNear) far_.resize(i - kNear + 1);
        return far_[i - kNear];
    }

    std::array<uint64_t, kNear> near_{};
    std::vector<uint64_t> far_;
};

}  // namespace berth::ledger
