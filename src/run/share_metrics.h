#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "share/answer.h"

namespace berth::run {

// What the arbitrator counts: amounts of each consumer as of the last cycle, and evictions by what came of them.
class ShareMetrics {
public:
    explicit ShareMetrics(base::Metrics& metrics);
    void show(const share::Answer& answer);
    void evicted(std::string_view reason);

private:
    struct Row {
        std::string consumer;
        Resources reserved, deserved, used, demand, borrowed, lent;
    };
    // A scrape reads on a thread of its own.
    struct Shown {
        std::mutex mutex;
        std::vector<Row> rows;
    };
    static void append(const Shown& shown, std::string& out);

    base::Metrics& metrics_;
    base::Counter& cycles_;
    std::shared_ptr<Shown> shown_ = std::make_shared<Shown>();
};

}  // namespace berth::run
