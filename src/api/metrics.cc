#include "api/metrics.h"

#include <fmt/format.h>

#include <iterator>

namespace berth::api {

void Metrics::count_request(std::string_view verb, std::string_view resource, int code, base::Duration took) {
    const double seconds = std::chrono::duration<double>(took).count();
    const std::lock_guard lock(mutex_);
    ++requests_[{std::string(verb), std::string(resource), std::to_string(code)}];
    if (verb == "watch") return;
    auto found = durations_.find(verb);
    if (found == durations_.end()) found = durations_.emplace(verb, Series{}).first;
    Series& series = found->second;
    ++series.count;
    series.seconds += seconds;
    for (size_t i = 0; i < kBounds.size(); ++i) series.buckets[i] += seconds <= kBounds[i] ? 1 : 0;
}

void Metrics::add_reading(std::string name, std::string help, std::string type, std::function<double()> read) {
    const std::lock_guard lock(mutex_);
    readings_.push_back({std::move(name), std::move(help), std::move(type), std::move(read)});
}

std::string Metrics::text() const {
    std::string out;
    auto to = std::back_inserter(out);
    const std::lock_guard lock(mutex_);
    fmt::format_to(to,
                   "# HELP apiserver_request_total Requests by verb, resource and code.\n# TYPE "
                   "apiserver_request_total counter\n");
    for (const auto& [labels, count] : requests_) {
        fmt::format_to(to, "apiserver_request_total{{verb=\"{}\",resource=\"{}\",code=\"{}\"}} {}\n", labels[0],
                       labels[1], labels[2], count);
    }
    fmt::format_to(to,
                   "# HELP apiserver_request_duration_seconds Time from the whole request to its answer.\n# TYPE "
                   "apiserver_request_duration_seconds histogram\n");
    for (const auto& [verb, series] : durations_) {
        for (size_t i = 0; i < kBounds.size(); ++i) {
            fmt::format_to(to, "apiserver_request_duration_seconds_bucket{{verb=\"{}\",le=\"{}\"}} {}\n", verb,
                           kBounds[i], series.buckets[i]);
        }
        fmt::format_to(to, "apiserver_request_duration_seconds_bucket{{verb=\"{}\",le=\"+Inf\"}} {}\n", verb,
                       series.count);
        fmt::format_to(to, "apiserver_request_duration_seconds_sum{{verb=\"{}\"}} {}\n", verb, series.seconds);
        fmt::format_to(to, "apiserver_request_duration_seconds_count{{verb=\"{}\"}} {}\n", verb, series.count);
    }
    for (const auto& reading : readings_) {
        fmt::format_to(to, "# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", reading.name, reading.help, reading.type,
                       reading.read());
    }
    return out;
}

}  // namespace berth::api
