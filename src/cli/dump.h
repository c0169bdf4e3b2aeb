#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::cli {

// The objects of a text as `kubectl get -o yaml|json` writes it: YAML or JSON, several documents, Lists taken apart.
Result<std::vector<Json>> read_objects(std::string_view text);
// The same of a file; "-" is standard input. The error names the file.
Result<std::vector<Json>> read_object_file(const std::string& path);

// Reads every file. `put` says whether the object's kind means anything; those that mean nothing give one warning each.
Status load_files(const std::vector<std::string>& files, const std::function<Result<bool>(const Json&)>& put);

}  // namespace berth::cli
