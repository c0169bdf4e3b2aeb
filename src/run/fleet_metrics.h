#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "fleet/hold_table.h"

// What operators see of machines and their pools, as numbers.
namespace berth::run {

// Of one layer's scheduler.
class LayerMetrics {
public:
    explicit LayerMetrics(base::Metrics& metrics);
    void decided(base::Duration took);
    void placed(base::Duration took);
    void tried_again() { attempts_.add(); }
    void wrote() { writes_.add(); }

private:
    base::Histogram& decision_;
    base::Histogram& placing_;
    base::Counter& attempts_;
    base::Counter& writes_;
};

// Of a provider: what is held and waits for its machine is blocked for everybody else.
class ProviderMetrics {
public:
    explicit ProviderMetrics(base::Metrics& metrics);
    void show(const fleet::HoldTable& table);
    void called() { calls_.add(); }

private:
    // A scrape reads on a thread of its own.
    struct Shown {
        std::mutex mutex;
        size_t holds = 0;
        size_t machines = 0;
        model::Amounts capacity, held, used;
    };
    static void append(const Shown& shown, std::string& out);

    base::Counter& calls_;
    std::shared_ptr<Shown> shown_ = std::make_shared<Shown>();
};

}  // namespace berth::run
