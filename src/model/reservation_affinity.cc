#include "model/reservation_affinity.h"

#include <algorithm>

#include "model/annotation.h"
#include "model/read_selectors.h"
#include "model/reservation.h"
#include "model/reservation_check.h"
#include "model/resource_names.h"

namespace berth::model {
namespace {

void read_terms(const Reader& required, ReservationAffinity& out) {
    if (!required.present()) return;
    const Reader list = required["reservationSelectorTerms"];
    out.terms = NodeSelector(read_node_selector_terms(list));
    for (const NodeTerm& term : out.terms->terms()) {
        if (!term.fault().empty()) list.wrong(term.fault());
    }
}

Result<ReservationAffinity> read_affinity(std::string_view text) {
    ReservationAffinity out;
    TRY(read_annotation(kReservationAffinity, text, [&](const Reader& root) {
        read_terms(root["requiredDuringSchedulingIgnoredDuringExecution"], out);
        out.selector = read_labels(root["reservationSelector"]);
        out.name = root["name"].text();
        out.tolerations = read_tolerations(root["tolerations"]);
        check_tolerations(root["tolerations"]);
    }));
    return out;
}

}  // namespace

bool ReservationAffinity::matches(std::string_view reservation, const Labels& labels) const {
    if (!name.empty() && name != reservation) return false;
    const bool selected = std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
        const std::string* value = labels.find(wanted.first);
        return value && *value == wanted.second;
    });
    return selected && (!terms || terms->matches(reservation, labels));
}

Result<std::vector<ResourceId>> read_resource_names(std::string_view key, std::string_view text,
                                                    std::string_view field) {
    std::vector<ResourceId> ids;
    TRY(read_annotation(key, text, [&](const Reader& root) {
        const Reader list = root[field];
        list.each([&](const Reader& item) {
            const auto id = intern_asked_resource(item.text());
            if (!id) return item.wrong(id.error().message);
            ids.push_back(*id);
        });
    }));
    std::sort(ids.begin(), ids.end());
    return ids;
}

Result<ReservationWishes> read_wishes(const Labels& annotations) {
    ReservationWishes wishes;
    if (annotations.empty()) return wishes;
    if (const std::string* text = annotations.find(kReservationAffinity)) wishes.affinity = TRY(read_affinity(*text));
    if (const std::string* text = annotations.find(kExactMatch)) {
        wishes.exact = TRY(read_resource_names(kExactMatch, *text, "resourceNames"));
    }
    return wishes;
}

}  // namespace berth::model
