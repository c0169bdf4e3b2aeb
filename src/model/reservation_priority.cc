#include "model/reservation_priority.h"

#include "model/reader.h"

namespace berth::model {

std::string named_class(JsonView reservation) {
    std::string trouble;
    const Reader root(reservation, trouble);
    const Reader spec = root["spec"];
    const Reader from = spec["template"];
    const Reader pod = from["spec"];
    return pod["priority"].present() ? std::string() : std::string(pod["priorityClassName"].text());
}

Reservation with_priority(Reservation reservation, int32_t priority) {
    auto spec = std::make_shared<PodSpec>(*reservation.spec);
    spec->priority = priority;
    reservation.spec = std::move(spec);
    return reservation;
}

}  // namespace berth::model
