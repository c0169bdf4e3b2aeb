#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "model/kinds/patch.h"

namespace berth::model {
namespace {

using base::bad_request;
using base::invalid;

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kElementOrder = "$setElementOrder/";
constexpr std::string_view kDeleteFromList = "$deleteFromPrimitiveList/";

// How a member is merged: by the field of its type; below maps of scalars and free-form JSON there is no type.
struct Rule {
    const Type* type = nullptr;
    std::string_view merge_key;
    bool merge_list = false;
};

Rule rule_of(const Type* type, std::string_view key) {
    const Field* field = type == nullptr ? nullptr : type->find(key);
    if (field == nullptr) return {};
    return {field->form == Form::Struct ? field->type : nullptr, field->merge_key, field->patch_merge};
}

Status merge_object(JsonObject& original, JsonObject& patch, const Type* type);

// ---- values taken over as they are -------------------------------------------------------------------------------

// Drops the items that keep() says no to; it may change them.
template <class Keep>
void keep_items(JsonArray& list, Keep keep) {
    size_t kept = 0;
    for (size_t i = 0; i < list.size(); ++i) {
        if (!keep(list[i])) continue;
        if (kept != i) list[kept] = std::move(list[i]);
        ++kept;
    }
    list.erase(list.begin() + kept, list.end());
}

// Removes directives, and null members, from a value that has nothing to be merged with. False: the value itself is a
// directive and is not to be kept.
bool clean(Json& value) {
    if (auto* object = value.if_object()) {
        if (object->contains(kDirective)) return false;
        for (auto it = object->begin(); it != object->end();) {
            it = it->value().is_null() || !clean(it->value()) ? object->erase(it) : it + 1;
        }
    } else if (auto* list = value.if_array()) {
        keep_items(*list, clean);
    }
    return true;
}

void take(JsonObject& original, std::string_view key, Json& value) {
    if (clean(value)) {
        original[key] = std::move(value);
    } else {
        original.erase(key);
    }
}

// ---- lists -------------------------------------------------------------------------------------------------------

const Json* key_of(const Json& item, std::string_view merge_key) {
    if (merge_key.empty()) return &item;
    const auto* object = item.if_object();
    return object == nullptr ? nullptr : object->if_contains(merge_key);
}

constexpr size_t kNowhere = std::string_view::npos;

// Where the items of a list stand, by their merge keys; of items with the same key the first counts.
class Places {
public:
    Places(const JsonArray& list, std::string_view merge_key) : merge_key_(merge_key) {
        for (size_t i = 0; i < list.size(); ++i) add(list[i], i);
    }

    void add(const Json& item, size_t at) {
        if (const Json* key = key_of(item, merge_key_)) places_.try_emplace(base::to_text(*key), at);
    }
    size_t of(const Json& item) const {
        const Json* key = key_of(item, merge_key_);
        const auto found = key == nullptr ? places_.end() : places_.find(base::to_text(*key));
        return found == places_.end() ? kNowhere : found->second;
    }
    bool has(const Json& item) const { return of(item) != kNowhere; }

private:
    std::string_view merge_key_;
    absl::flat_hash_map<std::string, size_t> places_;
};

Status check_keys(const JsonArray& list, std::string_view merge_key) {
    for (const auto& item : list) {
        const Json* key = key_of(item, merge_key);
        if (key != nullptr && !key->is_structured()) continue;
        if (merge_key.empty()) return invalid("lists of objects or lists cannot be merged without a merge key");
        return invalid(fmt::format("map: {} does not contain declared merge key: {}", base::to_text(item), merge_key));
    }
    return {};
}

void sort_by(JsonArray& list, const Places& order) {
    std::vector<std::pair<size_t, Json>> placed;
    placed.reserve(list.size());
    for (auto& item : list) placed.emplace_back(order.of(item), std::move(item));
    std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < list.size(); ++i) list[i] = std::move(placed[i].second);
}

// The merged list in its order: items named by patch_order in that order; the server's own items keep their places
// relative to the ones they stood before.
JsonArray in_order(JsonArray merged, const Places& patch_order, const Places& server_order) {
    JsonArray named(merged.storage());
    JsonArray own(merged.storage());
    for (auto& item : merged) (patch_order.has(item) ? named : own).push_back(std::move(item));
    sort_by(named, patch_order);
    sort_by(own, server_order);
    JsonArray out(merged.storage());
    out.reserve(merged.size());
    size_t i = 0;
    size_t j = 0;
    while (i < own.size() && j < named.size()) {
        const size_t right = server_order.of(named[j]);
        const bool own_first = right != kNowhere && server_order.of(own[i]) < right;
        out.push_back(std::move(own_first ? own[i++] : named[j++]));
    }
    while (i < own.size()) out.push_back(std::move(own[i++]));
    while (j < named.size()) out.push_back(std::move(named[j++]));
    return out;
}

// Takes the elements with $patch out of the patch and obeys them. Sets replace when the list is to be replaced.
Status obey_directives(JsonArray& original, JsonArray& patch, std::string_view merge_key, bool& replace) {
    JsonArray rest(patch.storage());
    JsonArray deleted(patch.storage());
    for (auto& item : patch) {
        const Json* directive = item.is_object() ? item.get_object().if_contains(kDirective) : nullptr;
        if (directive == nullptr) {
            rest.push_back(std::move(item));
        } else if (*directive == "replace") {
            replace = true;
        } else if (*directive == "delete") {
            if (key_of(item, merge_key) == nullptr)
                return invalid(fmt::format("a $patch: delete element lacks the merge key {}", merge_key));
            deleted.push_back(std::move(item));
        } else {
            return invalid(fmt::format("unknown directive $patch: {} in a list", base::to_text(*directive)));
        }
    }
    patch = std::move(rest);
    if (deleted.empty()) return {};
    const Places gone(deleted, merge_key);
    keep_items(original, [&](const Json& item) { return !gone.has(item); });
    return {};
}

Status merge_objects_by_key(JsonArray& original, JsonArray& patch, const Rule& rule) {
    bool replace = false;
    TRY(obey_directives(original, patch, rule.merge_key, replace));
    TRY(check_keys(patch, rule.merge_key));
    if (replace) {
        original = std::move(patch);
        return {};
    }
    TRY(check_keys(original, rule.merge_key));
    const Places patch_order(patch, rule.merge_key);
    const Places server_order(original, rule.merge_key);
    Places places = server_order;
    for (auto& item : patch) {
        const size_t at = places.of(item);
        if (at == kNowhere) {
            places.add(item, original.size());
            clean(item);
            original.push_back(std::move(item));
        } else {
            TRY(merge_object(original[at].get_object(), item.get_object(), rule.type));
        }
    }
    original = in_order(std::move(original), patch_order, server_order);
    return {};
}

void merge_scalars(JsonArray& original, JsonArray& patch) {
    const Places patch_order(patch, {});
    const Places server_order(original, {});
    Places places({}, {});
    JsonArray merged(original.storage());
    for (auto* list : {&original, &patch}) {
        for (auto& item : *list) {
            if (places.has(item)) continue;
            places.add(item, merged.size());
            merged.push_back(std::move(item));
        }
    }
    original = in_order(std::move(merged), patch_order, server_order);
}

Status merge_list(JsonArray& original, JsonArray& patch, const Rule& rule) {
    if (!rule.merge_list) {
        original = std::move(patch);
        return {};
    }
    if (original.empty() && patch.empty()) return {};
    if (!rule.merge_key.empty()) return merge_objects_by_key(original, patch, rule);
    TRY(check_keys(patch, {}));
    merge_scalars(original, patch);
    return {};
}

// ---- objects -----------------------------------------------------------------------------------------------------

// $retainKeys: members of the original that it does not name go; members of the patch must be named.
Status retain_keys(JsonObject& original, JsonObject& patch) {
    const Json* found = patch.if_contains(kRetainKeys);
    if (found == nullptr) return {};
    const Json kept = *found;
    patch.erase(kRetainKeys);
    if (!kept.is_array()) return invalid("invalid patch format of $retainKeys: it is a list of member names");
    absl::flat_hash_set<std::string_view> names;
    for (const auto& name : kept.get_array()) {
        if (name.is_string()) names.insert(name.get_string());
    }
    const auto named = [&](std::string_view key) { return names.contains(key); };
    for (const auto& [key, value] : patch) {
        if (value.is_null() || key.starts_with(kElementOrder) || key.starts_with(kDeleteFromList)) continue;
        if (!named(key))
            return invalid(fmt::format("$retainKeys does not name the patch's member {}", std::string(key)));
    }
    for (auto it = original.begin(); it != original.end();) it = named(it->key()) ? it + 1 : original.erase(it);
    return {};
}

// The patch's elements must stand in the order that $setElementOrder gives, and all be named by it.
Status check_order(const JsonArray& patch, const JsonArray& order, std::string_view merge_key) {
    if (order.empty()) return {};
    size_t at = 0;
    for (const auto& item : patch) {
        if (item.is_object() && item.get_object().contains(kDirective)) continue;
        const Json* key = key_of(item, merge_key);
        while (at < order.size() && (key == nullptr || *key_of(order[at], merge_key) != *key)) ++at;
        if (at == order.size()) return invalid("the order of a list in the patch does not match $setElementOrder");
        ++at;
    }
    return {};
}

Status apply_order(JsonObject& original, JsonObject& patch, const std::string& directive, const Type* type) {
    Json order = patch.at(directive);
    patch.erase(directive);
    const std::string key = directive.substr(kElementOrder.size());
    Json* theirs = patch.if_contains(key);
    Json* ours = original.if_contains(key);
    if (!order.is_array() || (theirs != nullptr && !theirs->is_array()) || (ours != nullptr && !ours->is_array()))
        return invalid(fmt::format("{} and {} must be lists", directive, key));
    const Rule rule = rule_of(type, key);
    TRY(check_keys(order.get_array(), rule.merge_key));
    if (theirs != nullptr) TRY(check_order(theirs->get_array(), order.get_array(), rule.merge_key));
    if (ours == nullptr && theirs == nullptr) return {};
    static const JsonArray kNone;
    const Places server_order(ours == nullptr ? kNone : ours->get_array(), rule.merge_key);
    if (ours == nullptr) {
        take(original, key, *theirs);
    } else if (theirs != nullptr) {
        TRY(merge_list(ours->get_array(), theirs->get_array(), rule));
    }
    patch.erase(key);
    auto& list = original[key].get_array();
    list = in_order(std::move(list), Places(order.get_array(), rule.merge_key), server_order);
    return {};
}

Status apply_orders(JsonObject& original, JsonObject& patch, const Type* type) {
    std::vector<std::string> directives;
    for (const auto& member : patch) {
        if (member.key().starts_with(kElementOrder)) directives.emplace_back(member.key());
    }
    for (const auto& directive : directives) TRY(apply_order(original, patch, directive, type));
    return {};
}

Status delete_from_list(JsonObject& original, std::string_view key, const Json& items) {
    if (!items.is_array()) return invalid(fmt::format("{}{} must be a list", kDeleteFromList, key));
    Json* list = original.if_contains(key);
    if (list == nullptr || !list->is_array()) return {};
    const Places gone(items.get_array(), {});
    keep_items(list->get_array(), [&](const Json& item) { return !gone.has(item); });
    return {};
}

Status merge_member(JsonObject& original, std::string_view key, Json& value, const Type* type) {
    if (key.starts_with(kDeleteFromList)) return delete_from_list(original, key.substr(kDeleteFromList.size()), value);
    if (value.is_null()) {
        original.erase(key);
        return {};
    }
    Json* ours = original.if_contains(key);
    if (ours != nullptr && ours->is_object() && value.is_object())
        return merge_object(ours->get_object(), value.get_object(), rule_of(type, key).type);
    if (ours != nullptr && ours->is_array() && value.is_array())
        return merge_list(ours->get_array(), value.get_array(), rule_of(type, key));
    take(original, key, value);
    return {};
}

Status merge_object(JsonObject& original, JsonObject& patch, const Type* type) {
    if (const Json* found = patch.if_contains(kDirective)) {
        const Json directive = *found;
        patch.erase(kDirective);
        if (directive == "replace") {
            original = std::move(patch);
            return {};
        }
        if (directive == "delete") {
            original.clear();
            return {};
        }
        if (directive != "merge") return bad_request(fmt::format("unknown patch type: {}", base::to_text(directive)));
    }
    TRY(retain_keys(original, patch));
    TRY(apply_orders(original, patch, type));
    for (auto& member : patch) TRY(merge_member(original, member.key(), member.value(), type));
    return {};
}

}  // namespace

Status apply_strategic_patch(Json& document, const Json& patch, const Type& type) {
    if (!patch.is_object() || !document.is_object())
        return bad_request("a strategic merge patch is an object, and so is what it patches");
    Json copy = patch;
    return merge_object(document.get_object(), copy.get_object(), &type);
}

}  // namespace berth::model
