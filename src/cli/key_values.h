#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace berth::cli {

// "cpu=4", "memory=8Gi": what a flag says word by word, as an object of texts. No key comes twice.
Result<JsonObject> key_values(const std::vector<std::string>& words, std::string_view flag);
// The same of resources that there are and their amounts, which are more than nothing.
Result<JsonObject> amounts_given(const std::vector<std::string>& words, std::string_view flag);

}  // namespace berth::cli
