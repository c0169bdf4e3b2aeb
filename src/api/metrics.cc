#include "api/metrics.h"

#include <array>

namespace berth::api {
namespace {

constexpr std::array<double, 8> kBounds{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 60};

}  // namespace

void Metrics::count_request(std::string_view verb, std::string_view resource, int code, base::Duration took) {
    counter("apiserver_request_total", "Requests by verb, resource and code.",
            {{"verb", verb}, {"resource", resource}, {"code", std::to_string(code)}})
        .add();
    if (verb == "watch") return;
    histogram("apiserver_request_duration_seconds", "Time from the whole request to its answer.", {{"verb", verb}},
              kBounds)
        .observe(std::chrono::duration<double>(took).count());
}

}  // namespace berth::api
