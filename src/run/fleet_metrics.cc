#include "run/fleet_metrics.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace berth::run {
namespace {

constexpr std::array<double, 12> kBounds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60};

double seconds(base::Duration took) {
    return std::chrono::duration<double>(took).count();
}

}  // namespace

LayerMetrics::LayerMetrics(base::Metrics& metrics)
    : decision_(metrics.histogram("berth_fleet_decision_seconds",
                                  "From seeing a Reservation to the answer of this layer.", {}, kBounds)),
      placing_(metrics.histogram("berth_fleet_placing_seconds", "From seeing a Machine to its pool.", {}, kBounds)),
      attempts_(metrics.counter("berth_fleet_attempts_total", "Machines that had to be tried again.")),
      writes_(metrics.counter("berth_fleet_writes_total", "Writes to the server of the layer.")) {}

void LayerMetrics::decided(base::Duration took) {
    decision_.observe(seconds(took));
}

void LayerMetrics::placed(base::Duration took) {
    placing_.observe(seconds(took));
}

ProviderMetrics::ProviderMetrics(base::Metrics& metrics)
    : calls_(metrics.counter("berth_fleet_calls_total", "Calls between pools and what is below them.")) {
    metrics.add_page([shown = shown_](std::string& out) {
        const std::lock_guard lock(shown->mutex);
        append(*shown, out);
    });
}

void ProviderMetrics::show(const fleet::HoldTable& table) {
    const std::lock_guard lock(shown_->mutex);
    size_t live = 0;
    for (const auto& [lineage, hold] : table.holds()) live += hold.live() ? 1 : 0;
    shown_->holds = live;
    shown_->machines = table.machines().size();
    shown_->capacity = table.capacity();
    shown_->held = table.held();
    shown_->used = table.used();
}

void ProviderMetrics::append(const Shown& shown, std::string& out) {
    const auto one = [&](const char* name, const char* help, size_t value) {
        fmt::format_to(std::back_inserter(out),
                       "# HELP berth_fleet_{} {}\n# TYPE berth_fleet_{} gauge\nberth_fleet_{} {}\n", name, help, name,
                       name, value);
    };
    one("holds", "Holds whose machine has not come yet.", shown.holds);
    one("machines", "Machines that are here.", shown.machines);
    const auto amounts = [&](const char* name, const char* help, const model::Amounts& all) {
        fmt::format_to(std::back_inserter(out), "# HELP berth_fleet_{} {}\n# TYPE berth_fleet_{} gauge\n", name, help,
                       name);
        for (const auto& [resource, amount] : all) {
            fmt::format_to(std::back_inserter(out), "berth_fleet_{}{{resource=\"{}\"}} {}\n", name, resource,
                           static_cast<double>(amount.milli()) / 1000);
        }
    };
    amounts("capacity", "What there is.", shown.capacity);
    amounts("blocked", "What is held and not used.", shown.held);
    amounts("used", "What machines have.", shown.used);
}

}  // namespace berth::run
