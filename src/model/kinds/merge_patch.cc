#include "model/kinds/patch.h"

namespace berth::model {
namespace {

void merge(Json& target, const JsonObject& patch) {
    if (!target.is_object()) target = JsonObject();
    auto& object = target.get_object();
    for (const auto& [key, value] : patch) {
        if (value.is_null()) {
            object.erase(key);
        } else if (const auto* nested = value.if_object()) {
            merge(object[key], *nested);
        } else {
            object[key] = value;
        }
    }
}

}  // namespace

Status apply_merge_patch(Json& document, const Json& patch) {
    const auto* object = patch.if_object();
    if (object == nullptr) return base::bad_request("a JSON merge patch is an object");
    merge(document, *object);
    return {};
}

}  // namespace berth::model
