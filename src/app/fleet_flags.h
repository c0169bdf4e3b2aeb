#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/hold.h"

namespace berth::app {

// What the parts of a fleet are told by flags and files. Errors are whole sentences.

// MachineClass objects, by name; "" is no file.
Result<std::map<std::string, model::Amounts>> read_classes(const std::string& file);
// "key=value" each.
Result<Labels> read_label_words(const std::vector<std::string>& words, const std::string& flag);
// --pool: as a MachinePool may be called.
Status check_pool_name(const std::string& name);

}  // namespace berth::app
