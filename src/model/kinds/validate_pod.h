#pragma once

#include <span>

#include "model/kinds/validate_rules.h"

namespace berth::model {

struct NamedRule {
    std::string_view name;
    ValidationRule rule;
};

// The rules by file.
std::span<const NamedRule> pod_rules();
std::span<const NamedRule> object_rules();
std::span<const NamedRule> share_rules();
std::span<const NamedRule> machine_rules();

}  // namespace berth::model
