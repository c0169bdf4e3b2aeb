#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Numbers for operators, in Prometheus' text form. Whoever counts keeps a reference to its number, so that counting is
// one atomic operation; the numbers live as long as their Metrics. Any thread.
namespace berth::base {

class Counter {
public:
    void add(uint64_t by = 1) { value_.fetch_add(by, std::memory_order_relaxed); }
    uint64_t value() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<uint64_t> value_ = 0;
};

class Gauge {
public:
    void set(double value) { value_.store(value, std::memory_order_relaxed); }
    double value() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<double> value_ = 0;
};

class Histogram {
public:
    explicit Histogram(std::span<const double> bounds)
        : bounds_(bounds.begin(), bounds.end()), buckets_(bounds.size() + 1) {}

    void observe(double value);
    const std::vector<double>& bounds() const { return bounds_; }
    // How many were at most bounds()[i]; the last one counts all.
    uint64_t up_to(size_t i) const;
    double sum() const { return sum_.load(std::memory_order_relaxed); }

private:
    const std::vector<double> bounds_;
    std::vector<std::atomic<uint64_t>> buckets_;  // not summed up
    std::atomic<double> sum_ = 0;
};

class Metrics {
public:
    using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

    // The same name and labels give the same number again.
    Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
    Gauge& gauge(std::string_view name, std::string_view help, const Labels& labels = {});
    Histogram& histogram(std::string_view name, std::string_view help, const Labels& labels,
                         std::span<const double> bounds);
    // A gauge or counter read when somebody asks, e.g. the number of connections. What it reads must live as long.
    void add_reading(std::string_view name, std::string_view help, std::string_view type, std::function<double()> read);
    // Whole families whose series come and go: appends them, with their HELP and TYPE lines, when somebody asks.
    void add_page(std::function<void(std::string&)> write);
    std::string text() const;

private:
    struct Series {
        std::unique_ptr<Counter> counter;
        std::unique_ptr<Gauge> gauge;
        std::unique_ptr<Histogram> histogram;
        std::function<double()> read;
    };
    struct Family {
        std::string help, type;
        std::map<std::string, Series, std::less<>> series;  // by the text of their labels: verb="get",code="200"
    };
    Series& series(std::string_view name, std::string_view help, std::string_view type, const Labels& labels);
    static void append(std::string& out, std::string_view name, std::string_view labels, const Series& series);

    mutable std::mutex mutex_;
    std::map<std::string, Family, std::less<>> families_;
    std::vector<std::function<void(std::string&)>> pages_;
};

}  // namespace berth::base
