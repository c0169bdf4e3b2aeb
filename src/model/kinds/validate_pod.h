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
std::span<const NamedRule> fleet_rules();

// A Machine gets its pool once; whoever takes it back says that with the next attempt.
void check_machine_update(const Json& before, const Json& after, Causes& causes);

}  // namespace berth::model
