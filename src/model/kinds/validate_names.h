#pragma once

#include <string_view>

#include "base/json.h"
#include "model/names.h"

// Forms of values beside those of names.h.
namespace berth::model {

Fault env_name_fault(std::string_view name);
Fault config_key_fault(std::string_view key);
// A port: a number from 1 to 65535, or the name of one.
Fault port_fault(const Json& value);
// A number from 0 up, or a percentage.
Fault share_fault(const Json& value);

}  // namespace berth::model
