#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <charconv>

#include "base/json.h"
#include "model/kinds/path.h"
#include "model/kinds/validate_pod.h"
#include "model/names.h"
#include "model/quantity.h"
#include "model/times.h"

// What is refused in the kinds of layered pools.
namespace berth::model {
namespace {

constexpr const char* kAttemptLabel = "berth.dev/attempt";
constexpr size_t kMostResources = 128;
constexpr size_t kMostPools = 10'000;

// Amounts above 0; `which` says of which names.
template <class Which>
void check_positive(const Json& object, std::string_view path, const Where& at, Causes& causes, Which which) {
    const JsonObject& amounts = members_at(object, path);
    if (amounts.size() > kMostResources)
        causes.too_long(at, fmt::format("may name at most {} resources", kMostResources));
    for (const auto& entry : amounts) {
        const std::string given(entry.value().is_string() ? std::string(entry.value().as_string())
                                                          : base::to_text(entry.value()));
        const auto quantity = Quantity::parse(given);
        const Where key = at.key(entry.key());
        if (const auto fault = qualified_name_fault(entry.key())) {
            causes.invalid(key, Json(entry.key()), *fault);
        } else if (!quantity) {
            causes.invalid(key, entry.value(), "is no amount");
        } else if (quantity->is_negative() || (quantity->is_zero() && which(entry.key()))) {
            causes.invalid(key, entry.value(), "must be greater than 0");
        }
    }
}

void check_pools(const Json& spec, const Where& where, Causes& causes) {
    const Where at = where.member("pools");
    const JsonArray& pools = list_at(spec, ".pools");
    if (pools.size() > kMostPools) return causes.too_long(at, fmt::format("may name at most {} pools", kMostPools));
    absl::flat_hash_set<std::string_view> seen;
    for (size_t i = 0; i < pools.size(); ++i) {
        const Where item = at.item(i);
        if (!pools[i].is_string() || pools[i].as_string().empty()) {
            causes.invalid(item, pools[i], "must be the name of a pool");
        } else if (const auto fault = dns1123_subdomain_fault(std::string_view(pools[i].as_string()))) {
            causes.invalid(item, pools[i], *fault);
        } else if (!seen.insert(std::string_view(pools[i].as_string())).second) {
            causes.duplicate(item, pools[i]);
        }
    }
}

void reservation(const Json& object, const Where& where, Causes& causes) {
    static const Json kNothing = JsonObject{};
    const Json* given = at_path(object, ".spec");
    const Json& spec = given != nullptr && given->is_object() ? *given : kNothing;
    const Where at = where.member("spec");
    if (members_at(spec, ".resources").empty()) causes.required(at.member("resources"));
    check_positive(spec, ".resources", at.member("resources"), causes, [](std::string_view) { return true; });
    check_pools(spec, at, causes);
    const auto duration = string_at(spec, ".duration");
    if (duration.empty()) return;
    const auto parsed = parse_duration(duration);
    if (!parsed || *parsed <= base::Duration::zero())
        causes.invalid(at.member("duration"), Json(duration), "must be a duration above 0, such as 1h30m");
}

void machine(const Json& spec, const Where& where, Causes& causes) {
    const Where at = where.member("machineClassRef");
    if (string_at(spec, ".machineClassRef.name").empty()) causes.required(at.member("name"));
    const Where pool = where.member("machinePoolRef");
    if (at_path(spec, ".machinePoolRef") != nullptr && string_at(spec, ".machinePoolRef.name").empty())
        causes.required(pool.member("name"));
}

// Of several sources exactly one.
void one_of(const Json& object, std::initializer_list<std::string_view> members, const Where& where, Causes& causes) {
    size_t given = 0;
    for (const auto member : members) {
        if (at_path(object, fmt::format(".{}", member)) == nullptr) continue;
        if (++given > 1) causes.forbidden(where.member(member), "may not specify more than 1 source");
    }
    if (given == 0) causes.required(where.member(*members.begin()), "must specify a source");
}

void machine_interface(const Json& object, const Where& where, Causes& causes) {
    one_of(object, {"networkInterfaceRef", "ephemeral"}, where, causes);
}

void machine_volume(const Json& object, const Where& where, Causes& causes) {
    one_of(object, {"localDisk", "volumeRef", "emptyDisk", "ephemeral"}, where, causes);
    for (const std::string_view disk : {"localDisk", "emptyDisk"}) {
        const auto size = string_at(object, fmt::format(".{}.sizeLimit", disk));
        const auto quantity = Quantity::parse(size);
        const Where at = where.member(disk);
        if (!size.empty() && quantity && quantity->is_negative())
            causes.invalid(at.member("sizeLimit"), Json(size), "must be greater than or equal to 0");
    }
}

void machine_class(const Json& object, const Where& where, Causes& causes) {
    const Where at = where.member("capabilities");
    const auto first = [](std::string_view name) { return name == "cpu" || name == "memory"; };
    check_positive(object, ".capabilities", at, causes, first);
    for (const std::string_view name : {"cpu", "memory"}) {
        if (!members_at(object, ".capabilities").contains(name)) causes.required(at.key(name));
    }
}

uint64_t attempt_of(const Json& object) {
    const auto* labels = base::find(object, {"metadata", "labels"});
    const std::string_view text = labels == nullptr ? "" : base::find_string(*labels, {kAttemptLabel});
    uint64_t out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
}

constexpr NamedRule kFleetRules[] = {{"fleet-reservation", reservation},
                                     {"machine", machine},
                                     {"machine-interface", machine_interface},
                                     {"machine-volume", machine_volume},
                                     {"machine-class", machine_class}};

}  // namespace

std::span<const NamedRule> fleet_rules() {
    return kFleetRules;
}

void check_machine_update(const Json& before, const Json& after, Causes& causes) {
    const auto was = string_at(before, ".spec.machinePoolRef.name");
    const auto is = string_at(after, ".spec.machinePoolRef.name");
    if (was.empty() || was == is) return;
    if (is.empty() && attempt_of(after) > attempt_of(before)) return;
    const Where root;
    const Where spec = root.member("spec");
    causes.invalid(spec.member("machinePoolRef"), is.empty() ? Json() : Json(is), "field is immutable once it is set");
}

}  // namespace berth::model
