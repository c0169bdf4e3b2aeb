#include "model/reservation_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/json_view.h"
#include "model/reservation.h"

namespace berth::model {
namespace {

constexpr std::string_view kTemplate = "spec.template.spec";

// "path: what" as the Reader remembers it.
base::Cause cause_of(std::string_view trouble) {
    const size_t colon = trouble.find(": ");
    const auto field = colon == std::string_view::npos ? std::string_view("spec") : trouble.substr(0, colon);
    const auto what = colon == std::string_view::npos ? trouble : trouble.substr(colon + 2);
    const bool missing = what.starts_with("is required") || what.starts_with("needs at least");
    return {missing ? "FieldValueRequired" : "FieldValueInvalid", std::string(what), std::string(field)};
}

class TemplateCheck {
public:
    explicit TemplateCheck(std::vector<base::Cause>& causes) : causes_(causes) {}

    void node_terms(const PodSpec& spec) {
        const auto at =
            fmt::format("{}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", kTemplate);
        if (!spec.required_nodes) return;
        if (spec.required_nodes->empty()) wrong(at + ".nodeSelectorTerms", "needs at least one term");
        for (size_t i = 0; i < spec.required_nodes->size(); ++i) {
            const NodeTerm term((*spec.required_nodes)[i]);
            if (!term.fault().empty()) wrong(fmt::format("{}.nodeSelectorTerms[{}]", at, i), term.fault());
        }
    }
    void pod_terms(std::string_view kind, const std::vector<PodTerm>& terms) {
        for (size_t i = 0; i < terms.size(); ++i) {
            if (!terms[i].topology_key.empty()) continue;
            wrong(fmt::format("{}.affinity.{}.requiredDuringSchedulingIgnoredDuringExecution[{}].topologyKey",
                              kTemplate, kind, i),
                  "is required");
        }
    }
    void spread(const PodSpec& spec) {
        for (size_t i = 0; i < spec.spread.size(); ++i) {
            const auto at = fmt::format("{}.topologySpreadConstraints[{}]", kTemplate, i);
            if (spec.spread[i].max_skew <= 0) wrong(at + ".maxSkew", "must be greater than zero");
            if (spec.spread[i].topology_key.empty()) wrong(at + ".topologyKey", "is required");
        }
    }
    void taints(const std::vector<Taint>& taints) {
        static constexpr std::string_view kEffects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
        for (size_t i = 0; i < taints.size(); ++i) {
            const auto& taint = taints[i];
            if (taint.key.empty()) wrong(fmt::format("spec.taints[{}].key", i), "is required");
            if (std::find(std::begin(kEffects), std::end(kEffects), taint.effect) != std::end(kEffects)) continue;
            wrong(fmt::format("spec.taints[{}].effect", i),
                  fmt::format("must be NoSchedule, PreferNoSchedule or NoExecute, but is \"{}\"", taint.effect));
        }
    }

private:
    void wrong(std::string field, std::string_view what) {
        base::Cause cause = cause_of(fmt::format("x: {}", what));
        cause.field = std::move(field);
        causes_.push_back(std::move(cause));
    }
    std::vector<base::Cause>& causes_;
};

void check_parts(const Reservation& reservation, ReservationCheck& check) {
    TemplateCheck part(check.causes);
    part.node_terms(*reservation.spec);
    part.pod_terms("podAffinity", reservation.spec->affinity);
    part.pod_terms("podAntiAffinity", reservation.spec->anti_affinity);
    part.spread(*reservation.spec);
    part.taints(reservation.taints);
    if (reservation.ttl && reservation.expires) {
        check.warnings.push_back("spec.ttl and spec.expires are meant to be exclusive; spec.expires alone decides");
    }
}

}  // namespace

ReservationCheck check_reservation(const Json& object) {
    ReservationCheck check;
    const std::string text = base::to_text(object);
    base::JsonParser parser;
    const auto view = parser.parse(text);
    if (!view) {
        check.causes.push_back({"FieldValueInvalid", view.error().message, ""});
        return check;
    }
    const auto reservation = read_reservation(*view);
    std::string trouble = reservation ? reservation->fault : reservation.error().message;
    if (!reservation) {
        const auto name = base::find_string(object, {"metadata", "name"});
        const std::string prefix = fmt::format("Reservation \"{}\": ", name);
        if (trouble.starts_with(prefix)) trouble.erase(0, prefix.size());
    }
    if (!trouble.empty()) {
        check.causes.push_back(cause_of(trouble));
    } else {
        check_parts(*reservation, check);
    }
    return check;
}

Status validate(const Json& reservation) {
    ReservationCheck check = check_reservation(reservation);
    if (check.causes.empty()) return {};
    std::string listed;
    for (const auto& cause : check.causes) {
        listed += fmt::format("{}{}: {}", listed.empty() ? "" : ", ", cause.field, cause.message);
    }
    Error error = base::invalid(fmt::format("Reservation.scheduling.koordinator.sh \"{}\" is invalid: {}",
                                            base::find_string(reservation, {"metadata", "name"}), listed));
    error.causes = std::move(check.causes);
    return error;
}

}  // namespace berth::model
