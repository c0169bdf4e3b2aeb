#include <fmt/format.h>

#include <map>

#include "model/kinds/path.h"
#include "model/kinds/validate_pod.h"
#include "model/quantity.h"
#include "model/quota.h"
#include "model/resource_names.h"
#include "model/resources.h"
#include "model/times.h"

// What is refused in a Consumer as it stands; what depends on others is told by consumer_rules.h.
namespace berth::model {
namespace {

struct Amount {
    Quantity quantity;
    bool percent = false;
};

using Amounts = std::map<std::string, Amount>;  // by resource

// What a ResourceQuota counts: a slip of the pen is no resource that nobody happens to have.
bool is_known(std::string_view name) {
    constexpr std::string_view kLimits = "limits.", kPages = "hugepages-";
    if (name.find('/') != std::string_view::npos || name.starts_with(kPages)) return true;
    if (is_count(name) || is_storage(name)) return true;
    if (name.starts_with(kLimits)) name.remove_prefix(kLimits.size());
    return name == "cpu" || name == "memory" || name == "ephemeral-storage";
}

// Amounts, or percentages where these are allowed; counts are for hard only.
Amounts check_amounts(const Json& spec, std::string_view field, const Where& at, bool percents, bool counts,
                      Causes& causes) {
    Amounts out;
    const JsonObject& given_amounts = members_at(spec, fmt::format(".{}", field));
    if (given_amounts.size() > kMostNamed) {
        causes.too_long(at, fmt::format("may name at most {} resources", kMostNamed));
        return out;
    }
    for (const auto& entry : given_amounts) {
        const Where key = at.key(entry.key());
        std::string given(entry.value().is_string() ? std::string(entry.value().as_string())
                                                    : base::to_text(entry.value()));
        const auto id = quota_resource(entry.key());
        if (!id || is_count(entry.key())) {
            if (!counts) causes.invalid(key, entry.value(), "counts are for hard only");
            if (!counts || !id) continue;
        }
        if (!is_known(resource_name(*id))) {
            causes.invalid(key, entry.value(), "is no key of a ResourceQuota, such as requests.cpu or limits.memory");
            continue;
        }
        const bool percent = percents && given.ends_with('%');
        if (percent) given.pop_back();
        const auto quantity = Quantity::parse(given);
        if (!quantity) {
            causes.invalid(key, entry.value(), percents ? "is neither an amount nor a percentage" : "is no amount");
        } else if (quantity->is_negative()) {
            causes.invalid(key, entry.value(), "must be greater than or equal to 0");
        } else if (percent && *quantity > Quantity::from_value(100)) {
            causes.invalid(key, entry.value(), "must be at most 100%");
        } else if (!out.emplace(resource_name(*id), Amount{*quantity, percent}).second) {
            causes.invalid(key, entry.value(), "another key says how much of the same resource");
        }
    }
    return out;
}

void consumer(const Json& object, const Where& where, Causes& causes) {
    static const Json kNothing = JsonObject{};
    const Json* given = at_path(object, ".spec");
    const Json& spec = given != nullptr && given->is_object() ? *given : kNothing;
    const Where at = where.member("spec");
    const Amounts hard = check_amounts(spec, "hard", at.member("hard"), true, true, causes);
    const Amounts reserved = check_amounts(spec, "reserved", at.member("reserved"), true, false, causes);
    for (const auto& [name, asked] : reserved) {
        const auto limit = hard.find(name);
        if (limit == hard.end() || limit->second.percent != asked.percent || asked.quantity <= limit->second.quantity)
            continue;
        const char* unit = asked.percent ? "%" : "";
        causes.invalid(at.member("reserved").key(name), Json(asked.quantity.text() + unit),
                       fmt::format("is more than hard: {}{} available", limit->second.quantity.text(), unit));
    }
    for (const auto* field : {"lendingLimit", "borrowingLimit", "request"})
        check_amounts(spec, field, at.member(field), false, false, causes);
    const int64_t weight = int_at(spec, ".weight");
    if (weight < 0 || weight > 1'000'000)
        causes.invalid(at.member("weight"), Json(weight), "must be from 0 to 1000000");
    const auto parent = string_at(spec, ".parent");
    if (!parent.empty() && parent == string_at(object, ".metadata.name"))
        causes.invalid(at.member("parent"), Json(parent), "it would be its own parent");
    if (const auto grace = string_at(spec, ".gracePeriod"); !grace.empty()) {
        const auto duration = parse_duration(grace);
        if (!duration || duration->count() < 0)
            causes.invalid(at.member("gracePeriod"), Json(grace), "is no duration such as 30s");
    }
}

constexpr NamedRule kRules[] = {{"consumer", consumer}};

}  // namespace

std::span<const NamedRule> share_rules() {
    return kRules;
}

}  // namespace berth::model
