#pragma once

#include <string_view>

#include "base/json.h"

namespace berth::model {

// A default that a line of defaults.tbl cannot say; it gets the object of the type it stands under.
using DefaultRule = void (*)(JsonObject&);

// nullptr when there is none of that name.
DefaultRule default_rule(std::string_view name);

}  // namespace berth::model
