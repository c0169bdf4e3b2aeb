#include "base/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace berth::base {
namespace {

std::string labels_text(const Metrics::Labels& labels) {
    std::string out;
    for (const auto& [key, value] : labels) {
        if (!out.empty()) out += ',';
        out += key;
        out += "=\"";
        for (const char c : value) {
            if (c == '"' || c == '\\') out += '\\';
            out += c == '\n' ? ' ' : c;
        }
        out += '"';
    }
    return out;
}

std::string braced(std::string_view labels) {
    return labels.empty() ? std::string() : fmt::format("{{{}}}", labels);
}

}  // namespace

void Histogram::observe(double value) {
    const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    buckets_[static_cast<size_t>(at)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
}

uint64_t Histogram::up_to(size_t i) const {
    uint64_t sum = 0;
    for (size_t k = 0; k <= i; ++k) sum += buckets_[k].load(std::memory_order_relaxed);
    return sum;
}

Metrics::Series& Metrics::series(std::string_view name, std::string_view help, std::string_view type,
                                 const Labels& labels) {
    auto family = families_.find(name);
    if (family == families_.end()) {
        family = families_.emplace(std::string(name), Family{std::string(help), std::string(type), {}}).first;
    }
    return family->second.series[labels_text(labels)];
}

Counter& Metrics::counter(std::string_view name, std::string_view help, const Labels& labels) {
    const std::lock_guard lock(mutex_);
    auto& found = series(name, help, "counter", labels).counter;
    if (!found) found = std::make_unique<Counter>();
    return *found;
}

Gauge& Metrics::gauge(std::string_view name, std::string_view help, const Labels& labels) {
    const std::lock_guard lock(mutex_);
    auto& found = series(name, help, "gauge", labels).gauge;
    if (!found) found = std::make_unique<Gauge>();
    return *found;
}

Histogram& Metrics::histogram(std::string_view name, std::string_view help, const Labels& labels,
                              std::span<const double> bounds) {
    const std::lock_guard lock(mutex_);
    auto& found = series(name, help, "histogram", labels).histogram;
    if (!found) found = std::make_unique<Histogram>(bounds);
    return *found;
}

void Metrics::add_reading(std::string_view name, std::string_view help, std::string_view type,
                          std::function<double()> read) {
    const std::lock_guard lock(mutex_);
    series(name, help, type, {}).read = std::move(read);
}

void Metrics::add_page(std::function<void(std::string&)> write) {
    const std::lock_guard lock(mutex_);
    pages_.push_back(std::move(write));
}

void Metrics::append(std::string& out, std::string_view name, std::string_view labels, const Series& series) {
    auto to = std::back_inserter(out);
    if (series.counter) fmt::format_to(to, "{}{} {}\n", name, braced(labels), series.counter->value());
    if (series.gauge) fmt::format_to(to, "{}{} {}\n", name, braced(labels), series.gauge->value());
    if (series.read) fmt::format_to(to, "{}{} {}\n", name, braced(labels), series.read());
    if (!series.histogram) return;
    const Histogram& all = *series.histogram;
    const std::string_view comma = labels.empty() ? "" : ",";
    for (size_t i = 0; i < all.bounds().size(); ++i) {
        fmt::format_to(to, "{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, comma, all.bounds()[i], all.up_to(i));
    }
    const uint64_t count = all.up_to(all.bounds().size());
    fmt::format_to(to, "{}_bucket{{{}{}le=\"+Inf\"}} {}\n", name, labels, comma, count);
    fmt::format_to(to, "{0}_sum{1} {2}\n{0}_count{1} {3}\n", name, braced(labels), all.sum(), count);
}

std::string Metrics::text() const {
    std::string out;
    const std::lock_guard lock(mutex_);
    for (const auto& [name, family] : families_) {
        fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, family.help, family.type);
        for (const auto& [labels, series] : family.series) append(out, name, labels, series);
    }
    for (const auto& write : pages_) write(out);
    return out;
}

}  // namespace berth::base
