#pragma once

#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "model/kinds/kinds.h"

// Whether an object is allowed, in the words of Kubernetes' validation (rules.tbl). Metadata is the door's; so is what
// needs other objects. Objects are expected to have passed check_fields and apply_defaults.
namespace berth::model {

// Empty: the object is fine.
std::vector<base::Cause> validate(const Json& object, const Kind& kind);

// What may not change: members that are immutable; data of ConfigMaps and Secrets marked immutable.
std::vector<base::Cause> validate_update(const Json& before, const Json& after, const Kind& kind);

}  // namespace berth::model
