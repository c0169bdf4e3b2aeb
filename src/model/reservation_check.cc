#include "model/reservation_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "model/names.h"
#include "model/read_selectors.h"
#include "model/reader.h"

namespace berth::model {
namespace {

constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

using Words = std::vector<std::string_view>;

const Words& effects() {
    static const Words all{"NoSchedule", "PreferNoSchedule", "NoExecute"};
    return all;
}

void check_word(const Reader& field, const Words& allowed) {
    const auto text = field.text();
    if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return;
    field.wrong(fmt::format("must be one of {}, but is \"{}\"", fmt::join(allowed, ", "), text));
}

void check_key(const Reader& field) {
    if (field.text().empty()) return field.wrong("is required");
    if (const auto fault = label_key_fault(field.text())) field.wrong(*fault);
}

void check_positive(const Reader& number) {
    if (number.integer() < 1) number.wrong("must be greater than zero");
}

void check_weight(const Reader& number) {
    if (number.integer() < 1 || number.integer() > 100) number.wrong("must be in the range 1-100");
}

void check_node_selector(const Reader& field) {
    field.entries([&](std::string_view key, const Reader& value) {
        if (const auto fault = label_key_fault(key)) field.wrong(fmt::format("key \"{}\": {}", key, *fault));
        if (const auto fault = label_value_fault(value.text())) value.wrong(*fault);
    });
}

void check_node_term(const Reader& from) {
    const NodeTerm term(read_node_selector_term(from));
    if (!term.fault().empty()) from.wrong(term.fault());
}

void check_node_affinity(const Reader& affinity) {
    if (const Reader required = affinity[kRequired]; required.present()) {
        const Reader terms = required["nodeSelectorTerms"];
        bool any = false;
        terms.each([&](const Reader& term) {
            any = true;
            check_node_term(term);
        });
        if (!any) terms.wrong("needs at least one term");
    }
    const Reader preferred = affinity[kPreferred];
    preferred.each([](const Reader& item) {
        check_weight(item["weight"]);
        check_node_term(item["preference"]);
    });
}

void check_pod_affinity(const Reader& affinity) {
    const Reader required = affinity[kRequired];
    required.each([](const Reader& term) { check_key(term["topologyKey"]); });
    const Reader preferred = affinity[kPreferred];
    preferred.each([](const Reader& item) {
        check_weight(item["weight"]);
        const Reader term = item["podAffinityTerm"];
        check_key(term["topologyKey"]);
    });
}

void check_spread(const Reader& constraint) {
    check_positive(constraint["maxSkew"]);
    check_key(constraint["topologyKey"]);
    check_word(constraint["whenUnsatisfiable"], {"DoNotSchedule", "ScheduleAnyway"});
    if (const Reader domains = constraint["minDomains"]; domains.present()) check_positive(domains);
}

// Lt and Gt are behind a gate that is off by default in v1.35.
void check_toleration(const Reader& from) {
    const Reader op = from["operator"];
    if (!op.text().empty()) check_word(op, {"Equal", "Exists"});
    const bool exists = op.text() == "Exists";
    const Reader key = from["key"];
    if (!key.text().empty()) check_key(key);
    if (key.text().empty() && !exists) op.wrong("must be Exists when `key` is empty");
    if (const Reader value = from["value"]; exists && !value.text().empty()) {
        value.wrong("must be empty when `operator` is Exists");
    }
    if (const Reader effect = from["effect"]; !effect.text().empty()) check_word(effect, effects());
}

}  // namespace

void check_template(const Reader& pod_spec) {
    check_node_selector(pod_spec["nodeSelector"]);
    const Reader affinity = pod_spec["affinity"];
    check_node_affinity(affinity["nodeAffinity"]);
    check_pod_affinity(affinity["podAffinity"]);
    check_pod_affinity(affinity["podAntiAffinity"]);
    check_tolerations(pod_spec["tolerations"]);
    const Reader spread = pod_spec["topologySpreadConstraints"];
    spread.each(check_spread);
}

void check_tolerations(const Reader& list) {
    list.each(check_toleration);
}

void check_taints(const Reader& list) {
    list.each([](const Reader& taint) {
        check_key(taint["key"]);
        check_word(taint["effect"], effects());
    });
}

}  // namespace berth::model
