#include "model/kinds/table.h"

#include <fmt/format.h>

#include "base/check.h"
#include "model/kinds/path.h"
#include "model/kinds/printers.h"

namespace berth::model {
namespace {

Json cell_of(const Column& column, const Json& object, base::Time now) {
    const std::string_view source = column.source;
    if (source.starts_with('.')) return Json(string_at(object, source));
    const size_t space = source.find(' ');
    const Printer* printer = find_printer(source.substr(0, space));
    CHECK(printer != nullptr);
    const auto argument = space == std::string_view::npos ? std::string_view() : source.substr(space + 1);
    return printer->print({object, argument, now});
}

Json finished(std::string_view phase, std::string_view message) {
    return {{"type", "Completed"}, {"status", "True"}, {"reason", phase}, {"message", message}};
}

}  // namespace

JsonArray table_columns(const Kind& kind) {
    JsonArray columns;
    for (const auto& c : kind.columns) {
        columns.push_back({{"name", c.name},
                           {"type", c.type},
                           {"format", c.format},
                           {"description", c.description},
                           {"priority", c.priority}});
    }
    return columns;
}

JsonObject table_row(const Kind& kind, const Json& object, base::Time now) {
    JsonArray cells;
    cells.reserve(kind.columns.size());
    for (const auto& column : kind.columns) cells.push_back(cell_of(column, object, now));
    JsonObject row{{"cells", std::move(cells)}};
    if (kind.kind != "Pod" || !kind.group.empty()) return row;
    const auto phase = string_at(object, ".status.phase");
    if (phase == "Succeeded") row["conditions"] = JsonArray{finished(phase, "The pod has completed successfully.")};
    if (phase == "Failed") row["conditions"] = JsonArray{finished(phase, "The pod failed.")};
    return row;
}

std::string human_duration(base::Duration age) {
    const int64_t seconds = age.count() / 1'000'000'000;
    if (seconds < -1) return "<invalid>";
    if (seconds < 0) return "0s";
    if (seconds < 120) return fmt::format("{}s", seconds);
    // Two units while the larger is small, then one: {upper bound, unit, the unit below it or 0}.
    struct Step {
        int64_t below, unit;
        char name;
        int64_t smaller;
        char smaller_name;
    };
    constexpr int64_t minute = 60, hour = 3600, day = 86400, year = 365 * day;
    constexpr Step steps[] = {{10 * minute, minute, 'm', 1, 's'}, {3 * hour, minute, 'm', 0, ' '},
                              {8 * hour, hour, 'h', minute, 'm'}, {48 * hour, hour, 'h', 0, ' '},
                              {8 * day, day, 'd', hour, 'h'},     {2 * year, day, 'd', 0, ' '},
                              {8 * year, year, 'y', day, 'd'},    {INT64_MAX, year, 'y', 0, ' '}};
    for (const auto& step : steps) {
        if (seconds >= step.below) continue;
        const int64_t rest = step.smaller == 0 ? 0 : seconds % step.unit / step.smaller;
        if (rest == 0) return fmt::format("{}{}", seconds / step.unit, step.name);
        return fmt::format("{}{}{}{}", seconds / step.unit, step.name, rest, step.smaller_name);
    }
    return "";
}

}  // namespace berth::model
