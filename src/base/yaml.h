#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::base {

struct YamlLimits {
    size_t bytes = size_t{64} << 20;
    size_t alias_values = 10'000;  // what all aliases together may expand to
};

// The documents of a YAML (or JSON) text; those without content are left out. Scalars mean what they mean to kubectl
// (YAML 1.1 as sigs.k8s.io/yaml reads it: yes, on and y are true, 010 is 8, dates are strings); keys become strings;
// "<<" merges, and a key of the mapping itself wins. Duplicate keys, more than kMaxJsonDepth levels, NaN and infinity
// are refused. The error names the line.
Result<std::vector<Json>> parse_yaml(std::string_view text, const YamlLimits& limits = {});

// A document as people write it; parse_yaml() gives it back.
std::string yaml_text(const Json& value);

}  // namespace berth::base
