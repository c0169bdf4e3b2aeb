#pragma once

#include <cstdint>
#include <vector>

#include "share/tree.h"

namespace berth::share {

// A sum of doubles that come and go. Whatever goes came as the same number, and what one addition rounds off is kept,
// so nothing adds up however often that happens.
class Sum {
public:
    void add(double value) {
        const double sum = high_ + value;
        const double part = sum - high_;
        low_ += (high_ - (sum - part)) + (value - part);
        high_ = sum;
    }
    double value() const { return high_ + low_; }

private:
    double high_ = 0, low_ = 0;
};

// Whom one level keeps as they are, while it stays between two bounds of each. 32 side by side have their narrowest
// bounds in common, so those beyond are found without a look at everybody.
class Watch {
public:
    struct Bounds {
        double low = -kInfinity, high = kInfinity;
    };
    uint32_t put(NodeId node, Bounds bounds);
    void set(uint32_t slot, Bounds bounds);
    // Returns who has that slot now; kRoot: nobody.
    NodeId drop(uint32_t slot);
    void beyond(double level, std::vector<NodeId>& out) const;

private:
    static constexpr uint32_t kBlock = 32;
    void narrow(uint32_t block);

    std::vector<double> low_, high_;
    std::vector<NodeId> nodes_;
    std::vector<Bounds> blocks_;
};

}  // namespace berth::share
