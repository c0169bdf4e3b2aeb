#include "cli/phrases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace berth::cli {
namespace {

std::string owner_text(const model::ReservationOwner& owner) {
    std::vector<std::string> out;
    if (owner.object) out.push_back(fmt::format("pod {}/{}", owner.object->ns, owner.object->name));
    if (owner.controller) {
        out.push_back(fmt::format("{} {}/{}", owner.controller->kind, owner.controller->ns, owner.controller->name));
    }
    if (owner.labels) out.push_back(owner.labels->text());
    return fmt::format("{}", fmt::join(out, " and "));
}

}  // namespace

std::string amounts_text(const model::Resources& resources) {
    std::vector<std::string> out;
    resources.for_each([&](model::ResourceId id, int64_t amount) {
        if (id == model::kPods || amount == 0) return;
        out.push_back(fmt::format("{}={}", model::resource_name(id), model::quantity_text(id, amount)));
    });
    return out.empty() ? "-" : fmt::format("{}", fmt::join(out, ","));
}

std::string owners_text(const model::Reservation& reservation) {
    std::vector<std::string> out;
    for (const auto& owner : reservation.owners) out.push_back(owner_text(owner));
    return fmt::format("{}", fmt::join(out, " or "));
}

model::Resources idle_of(const model::Resources& reserved, const model::Resources& drawn) {
    model::Resources out = reserved;
    drawn.for_each(
        [&](model::ResourceId id, int64_t amount) { out.set(id, std::max<int64_t>(0, out.get(id) - amount)); });
    return out;
}

}  // namespace berth::cli
