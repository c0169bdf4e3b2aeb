#include "run/reservation_metrics.h"

#include <fmt/format.h>

#include <iterator>

namespace berth::run {
namespace {

struct Unit {
    std::string_view name;
    double scale;
};

Unit unit_of(model::ResourceId id) {
    if (id == model::kCpu) return {"core", 1000};
    const auto name = model::resource_name(id);
    const bool bytes = name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
    return {bytes ? "byte" : "integer", 1};
}

void append_amounts(const model::Reservation& object, std::string_view type, const model::Resources& amounts,
                    std::string& out) {
    amounts.for_each([&](model::ResourceId id, int64_t amount) {
        if (id == model::kPods) return;
        const Unit unit = unit_of(id);
        fmt::format_to(std::back_inserter(out),
                       "scheduler_reservation_resource{{name=\"{}\",resource=\"{}\",type=\"{}\",unit=\"{}\"}} {}\n",
                       object.meta.name, model::resource_name(id), type, unit.name,
                       static_cast<double>(amount) / unit.scale);
    });
}

}  // namespace

void append_reservation_metrics(const ledger::View& ledger, std::string& out) {
    out +=
        "# HELP scheduler_reservation_status_phase 1 for the phase that a reservation is in.\n"
        "# TYPE scheduler_reservation_status_phase gauge\n";
    for (const auto& [uid, index] : ledger.reservations()) {
        const auto& object = *ledger.reservation(index).object;
        fmt::format_to(std::back_inserter(out), "scheduler_reservation_status_phase{{name=\"{}\",phase=\"{}\"}} 1\n",
                       object.meta.name, model::name_of(object.phase));
    }
    out +=
        "# HELP scheduler_reservation_resource What reservations hold and what their owners have of it.\n"
        "# TYPE scheduler_reservation_resource gauge\n";
    for (const auto& [uid, index] : ledger.reservations()) {
        const auto& object = *ledger.reservation(index).object;
        append_amounts(object, "allocatable", object.allocatable, out);
        append_amounts(object, "allocated", object.allocated, out);
    }
}

}  // namespace berth::run
