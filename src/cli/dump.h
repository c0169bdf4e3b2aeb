#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::cli {

// The objects of a text as `kubectl get -o yaml|json` writes it: YAML or JSON, several documents, Lists taken apart.
Result<std::vector<Json>> read_objects(std::string_view text);
// The same of a file; "-" is standard input. The error names the file.
Result<std::vector<Json>> read_object_file(const std::string& path);

}  // namespace berth::cli
