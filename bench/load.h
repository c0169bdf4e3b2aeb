#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "bench/flock.h"
#include "bench/measure.h"

namespace berth::bench {

// A directory of its own for a measured server; gone with it.
class BenchPlace {
public:
    explicit BenchPlace(const std::string& data_dir);
    BenchPlace(const BenchPlace&) = delete;
    BenchPlace& operator=(const BenchPlace&) = delete;
    ~BenchPlace();
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

Result<BenchFlock> connect_to(const std::string& url, const std::string& data_dir, size_t count);

// "total" requests, on each connection one after the other. An answer with another code is an error.
struct Load {
    int64_t total = 0;
    int code = 200;
    std::function<std::string(int64_t number)> request;
    std::function<void(int64_t number)> sent = nullptr;
};
Result<Latencies> run_load(BenchFlock& flock, const Load& load);

// A pod as people write them.
std::string pod_text(const std::string& name);

}  // namespace berth::bench
