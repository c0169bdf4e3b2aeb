#include "model/allocated.h"

#include "base/json.h"
#include "model/reservation.h"

namespace berth::model {

std::optional<Allocated> read_allocated(const Meta& pod) {
    const std::string* text = pod.annotations.find(kReservationAllocated);
    if (!text) return std::nullopt;
    const auto value = base::parse_json(*text);
    if (!value) return std::nullopt;
    Allocated link{std::string(base::find_string(*value, {"name"})), std::string(base::find_string(*value, {"uid"}))};
    if (link.uid.empty()) return std::nullopt;
    return link;
}

std::string allocated_text(const Allocated& link) {
    return base::to_text(Json(JsonObject{{"name", link.name}, {"uid", link.uid}}));
}

}  // namespace berth::model
