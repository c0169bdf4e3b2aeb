#include "model/reservation_check.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "model/names.h"
#include "model/quantity.h"
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

bool is_address(std::string_view text) {
    in6_addr bytes;
    const std::string ended(text);
    return inet_pton(AF_INET, ended.c_str(), &bytes) == 1 || inet_pton(AF_INET6, ended.c_str(), &bytes) == 1;
}

void check_port(const Reader& port) {
    if (const Reader protocol = port["protocol"]; !protocol.text().empty()) {
        check_word(protocol, {"SCTP", "TCP", "UDP"});
    }
    if (const Reader ip = port["hostIP"]; !ip.text().empty() && !is_address(ip.text())) {
        ip.wrong(fmt::format("must be an IP address, but is \"{}\"", ip.text()));
    }
}

// Those of extended resources are whole numbers.
void check_amount(const Reader& amounts, std::string_view name, const Reader& value) {
    if (const auto fault = qualified_name_fault(name)) amounts.wrong(fmt::format("name \"{}\": {}", name, *fault));
    if (name.find('/') == std::string_view::npos) return;
    const std::string text = value.text_or_number();
    const auto amount = Quantity::parse(text);
    if (amount && amount->milli() % 1000 != 0) value.wrong(fmt::format("must be an integer, but is {}", text));
}

void check_container(const Reader& container) {
    const Reader ports = container["ports"];
    ports.each(check_port);
    const Reader resources = container["resources"];
    for (const auto* key : {"requests", "limits"}) {
        const Reader amounts = resources[key];
        amounts.entries([&](std::string_view name, const Reader& value) { check_amount(amounts, name, value); });
    }
}

void check_volume(const Reader& volume) {
    const Reader claim = volume["persistentVolumeClaim"];
    if (!claim.present()) return;
    if (const Reader name = claim["claimName"]; name.text().empty()) name.wrong("is required");
}

}  // namespace

void check_template(const Reader& pod_spec) {
    for (const auto* key : {"containers", "initContainers"}) {
        const Reader containers = pod_spec[key];
        containers.each(check_container);
    }
    const Reader volumes = pod_spec["volumes"];
    volumes.each(check_volume);
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
