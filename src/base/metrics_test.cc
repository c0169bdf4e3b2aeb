#include "base/metrics.h"

#include <gtest/gtest.h>

#include <array>

namespace berth::base {
namespace {

TEST(Metrics, ArePrintedAsPrometheusReadsThem) {
    Metrics metrics;
    metrics.counter("b_total", "Things.", {{"kind", "x"}, {"why", "a \"b\""}}).add(3);
    metrics.counter("b_total", "Things.", {{"kind", "x"}, {"why", "a \"b\""}}).add();
    metrics.gauge("a", "Now.").set(2.5);
    metrics.add_reading("c", "Read.", "gauge", [] { return 7.0; });
    EXPECT_EQ(metrics.text(),
              "# HELP a Now.\n# TYPE a gauge\na 2.5\n"
              "# HELP b_total Things.\n# TYPE b_total counter\nb_total{kind=\"x\",why=\"a \\\"b\\\"\"} 4\n"
              "# HELP c Read.\n# TYPE c gauge\nc 7\n");
}

TEST(Metrics, AHistogramCountsWhatIsAtMostItsBounds) {
    Metrics metrics;
    constexpr std::array bounds{0.5, 1.0};
    auto& histogram = metrics.histogram("h", "Times.", {{"p", "q"}}, bounds);
    for (const double value : {0.25, 0.5, 0.75, 4.0}) histogram.observe(value);
    EXPECT_EQ(metrics.text(),
              "# HELP h Times.\n# TYPE h histogram\nh_bucket{p=\"q\",le=\"0.5\"} 2\nh_bucket{p=\"q\",le=\"1\"} 3\n"
              "h_bucket{p=\"q\",le=\"+Inf\"} 4\nh_sum{p=\"q\"} 5.5\nh_count{p=\"q\"} 4\n");
}

}  // namespace
}  // namespace berth::base
