#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace berth::api {

// The numbers of the server in Prometheus' text form. Any thread.
class Metrics {
public:
    void count_request(std::string_view verb, std::string_view resource, int code, base::Duration took);
    // A gauge or counter read when somebody asks, e.g. the number of connections.
    void add_reading(std::string name, std::string help, std::string type, std::function<double()> read);
    std::string text() const;

private:
    static constexpr std::array<double, 8> kBounds{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 60};
    struct Series {
        uint64_t count = 0;
        double seconds = 0;
        std::array<uint64_t, kBounds.size()> buckets{};
    };
    struct Reading {
        std::string name, help, type;
        std::function<double()> read;
    };
    mutable std::mutex mutex_;
    std::map<std::array<std::string, 3>, uint64_t, std::less<>> requests_;  // verb, resource, code
    std::map<std::string, Series, std::less<>> durations_;                  // by verb
    std::vector<Reading> readings_;
};

}  // namespace berth::api
