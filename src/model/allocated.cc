#include "model/allocated.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/json.h"
#include "model/annotation.h"
#include "model/pod_resources.h"
#include "model/reservation.h"

namespace berth::model {
namespace {

std::string required_text(const Reader& from, std::string_view key) {
    const Reader field = from[key];
    if (field.text().empty()) field.wrong("is required");
    return std::string(field.text());
}

}  // namespace

std::vector<Allocated> Links::named() const {
    std::vector<Allocated> out;
    if (allocated) out.push_back(*allocated);
    for (const auto& draw : draws) out.push_back({draw.name, draw.uid});
    return out;
}

Result<Links> read_links(const Labels& annotations) {
    Links links;
    if (annotations.empty()) return links;
    if (const std::string* text = annotations.find(kReservationAllocated); text && !text->empty()) {
        TRY(read_annotation(kReservationAllocated, *text, [&](const Reader& root) {
            links.allocated = {std::string(root["name"].text()), required_text(root, "uid")};
        }));
    }
    if (const std::string* text = annotations.find(kReservationDraws); text && !text->empty()) {
        TRY(read_annotation(kReservationDraws, *text, [&](const Reader& root) {
            root.each([&](const Reader& item) {
                links.draws.push_back({std::string(item["name"].text()), required_text(item, "uid"),
                                       read_resource_list(item["resources"])});
            });
        }));
    }
    std::set<std::string_view> named;
    if (links.allocated) named.insert(links.allocated->uid);
    for (const auto& draw : links.draws) {
        if (named.insert(draw.uid).second) continue;
        return base::invalid(
            fmt::format("annotation \"{}\": names the reservation with uid \"{}\" twice", kReservationDraws, draw.uid));
    }
    return links;
}

std::string allocated_text(const Allocated& link) {
    return base::to_text(Json(JsonObject{{"name", link.name}, {"uid", link.uid}}));
}

JsonObject amounts_document(const Resources& amounts) {
    std::map<std::string_view, std::string> sorted;
    amounts.for_each([&](ResourceId id, int64_t amount) {
        if (id != kPods) sorted.emplace(resource_name(id), quantity_text(id, amount));
    });
    JsonObject out;
    for (const auto& [name, text] : sorted) out[name] = text;
    return out;
}

std::string draws_text(const std::vector<Draw>& draws) {
    JsonArray list;
    for (const Draw& draw : draws) {
        list.push_back(
            JsonObject{{"name", draw.name}, {"uid", draw.uid}, {"resources", amounts_document(draw.amount)}});
    }
    return base::to_text(list);
}

}  // namespace berth::model
