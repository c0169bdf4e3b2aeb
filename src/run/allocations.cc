#include "run/allocations.h"

#include <algorithm>
#include <map>

#include "control/shares.h"
#include "model/consumer.h"
#include "model/quota.h"
#include "model/times.h"

namespace berth::run {
namespace {

JsonObject quota_document(const Resources& amounts) {
    std::map<std::string, std::string> texts;
    amounts.for_each(
        [&](ResourceId id, int64_t amount) { texts.emplace(model::resource_name(id), model::quota_text(id, amount)); });
    JsonObject out;
    for (const auto& [name, text] : texts) out[name] = text;
    return out;
}

// At most what there is.
Resources clipped(const Resources& amounts, const Resources& most) {
    Resources out;
    amounts.for_each([&](ResourceId id, int64_t amount) { out.set(id, std::min(amount, most.get(id, amount))); });
    return out;
}

JsonObject spec_document(const Published& wanted) {
    const auto& account = wanted.account;
    const Resources& deserved = account.share.deserved;
    return {{"deserved", quota_document(account.infinite ? clipped(deserved, wanted.capacity) : deserved)},
            {"hard", quota_document(account.hard)},
            {"reserved", quota_document(account.reserved)}};
}

// One that was true already keeps its time.
JsonArray conditions_document(const std::vector<share::Condition>& conditions, const Json* before, base::Time now) {
    JsonArray out;
    for (const auto& condition : conditions) {
        std::string since = model::time_text(now);
        if (before != nullptr && before->is_array()) {
            for (const auto& old : before->as_array()) {
                if (base::find_string(old, {"type"}) == condition.type)
                    since = base::find_string(old, {"lastTransitionTime"});
            }
        }
        out.push_back(JsonObject{{"type", condition.type},
                                 {"status", "True"},
                                 {"lastTransitionTime", since},
                                 {"reason", condition.type},
                                 {"message", condition.message}});
    }
    return out;
}

JsonObject status_document(const Published& wanted, const Json* before, base::Time now) {
    JsonObject out{{"used", quota_document(wanted.account.used)},
                   {"demand", quota_document(wanted.account.demand)},
                   {"overused", wanted.account.overused}};
    const auto* standing = wanted.standing;
    if (standing != nullptr && standing->overused_since)
        out["overusedSince"] = model::time_text(*standing->overused_since);
    if (standing != nullptr && standing->deadline) {
        out["reclaim"] = JsonObject{{"amounts", quota_document(standing->amounts)},
                                    {"deadline", model::time_text(*standing->deadline)}};
    }
    const Json* conditions = before != nullptr ? base::find(*before, {"conditions"}) : nullptr;
    out["conditions"] = conditions_document(wanted.conditions, conditions, now);
    return out;
}

bool close(const Json& a, const Json& b) {
    if (!a.is_string() || !b.is_string()) return a == b;
    const auto first = Quantity::parse(std::string_view(a.as_string()));
    const auto second = Quantity::parse(std::string_view(b.as_string()));
    if (!first || !second) return a == b;
    const auto one = static_cast<double>(first->milli()), other = static_cast<double>(second->milli());
    return std::abs(one - other) <= std::max(one, other) / 100;
}

// The same keys, and amounts that are the same or nearly so.
bool alike(const Json* before, const Json& wanted, bool exact) {
    if (before == nullptr) return wanted.is_object() && wanted.as_object().empty();
    if (!before->is_object() || !wanted.is_object() || before->as_object().size() != wanted.as_object().size())
        return false;
    return std::all_of(wanted.as_object().begin(), wanted.as_object().end(), [&](const auto& entry) {
        const Json* old = before->as_object().if_contains(entry.key());
        return old != nullptr && (exact ? *old == entry.value() : close(*old, entry.value()));
    });
}

bool spec_differs(const Json* before, const JsonObject& wanted, bool exact) {
    const auto part = [&](const char* name) { return before != nullptr ? base::find(*before, {name}) : nullptr; };
    return !alike(part("deserved"), wanted.at("deserved"), exact) || !alike(part("hard"), wanted.at("hard"), true) ||
           !alike(part("reserved"), wanted.at("reserved"), true);
}

bool status_differs(const Json* before, const JsonObject& wanted, bool exact) {
    if (before == nullptr || !before->is_object()) return true;
    const auto same = [&](const char* name) {
        const Json* old = before->as_object().if_contains(name);
        const Json* now = wanted.if_contains(name);
        const auto empty = [](const Json* value) {
            return value == nullptr || value->is_null() || (value->is_array() && value->as_array().empty()) ||
                   (value->is_bool() && !value->as_bool());
        };
        return (empty(old) && empty(now)) || (old != nullptr && now != nullptr && *old == *now);
    };
    const auto part = [&](const char* name) { return base::find(*before, {name}); };
    return !same("overused") || !same("overusedSince") || !same("reclaim") || !same("conditions") ||
           !alike(part("used"), wanted.at("used"), exact) || !alike(part("demand"), wanted.at("demand"), exact);
}

model::Write replacement(const model::Meta& meta, const char* part, JsonObject value) {
    const JsonObject step{{"op", "add"}, {"path", std::string("/") + part}, {"value", std::move(value)}};
    model::Write write{
        model::Write::Verb::JsonPatch, control::kAllocationResource, "v1", "", meta.name, "", JsonArray{step}};
    write.uid = meta.uid;
    if (std::string_view(part) == "status") write.subresource = part;
    return write;
}

model::Write creation(const Published& wanted, JsonObject spec) {
    JsonObject meta{{"name", wanted.account.name}};
    const std::string version = std::string(model::kSharesGroup) + "/v1";
    if (!wanted.owner_uid.empty()) {
        meta["ownerReferences"] = JsonArray{JsonObject{
            {"apiVersion", version}, {"kind", "Consumer"}, {"name", wanted.account.name}, {"uid", wanted.owner_uid}}};
    }
    return model::create_object(
        control::kAllocationResource, "",
        JsonObject{{"apiVersion", version}, {"kind", "Allocation"}, {"metadata", meta}, {"spec", std::move(spec)}});
}

}  // namespace

model::Writes allocation_writes(const Published& wanted, const StoredAllocation* stored, base::Time now, bool exact) {
    JsonObject spec = spec_document(wanted);
    if (stored == nullptr) return {creation(wanted, std::move(spec))};
    model::Writes out;
    const Json* status_before = base::find(stored->document, {"status"});
    JsonObject status = status_document(wanted, status_before, now);
    const Json* spec_before = base::find(stored->document, {"spec"});
    // What belongs together comes together: an exact amount beside an old one would not add up.
    const bool spec_changes = spec_differs(spec_before, spec, exact);
    if (spec_changes) out.push_back(replacement(stored->meta, "spec", std::move(spec)));
    if (spec_changes ? status_differs(status_before, status, true) : status_differs(status_before, status, exact))
        out.push_back(replacement(stored->meta, "status", std::move(status)));
    return out;
}

Remembered remembered(const Json& allocation) {
    const auto time_at = [&](std::initializer_list<std::string_view> path) -> std::optional<base::Time> {
        const auto time = model::parse_time(base::find_string(allocation, path));
        return time ? std::optional<base::Time>(*time) : std::nullopt;
    };
    return {time_at({"status", "overusedSince"}), time_at({"status", "reclaim", "deadline"})};
}

}  // namespace berth::run
