#pragma once

#include <string_view>

#include "base/json.h"
#include "model/kinds/kinds.h"

// What the tests of the kinds do with objects that are written in them.
namespace berth::model {

inline Json parsed(std::string_view text) {
    return base::parse_json(text).value();
}

inline const Kind& kind_of(const Json& object) {
    return *kinds().of(base::find_string(object, {"apiVersion"}), base::find_string(object, {"kind"}));
}

// A null member means the same as none once the object is decoded.
inline Json drop_nulls(Json value) {
    if (auto* object = value.if_object()) {
        for (auto it = object->begin(); it != object->end();) {
            it->value() = drop_nulls(it->value());
            it = it->value().is_null() ? object->erase(it) : it + 1;
        }
    } else if (auto* list = value.if_array()) {
        for (auto& item : *list) item = drop_nulls(item);
    }
    return value;
}

}  // namespace berth::model
