#pragma once

#include "base/json.h"
#include "base/result.h"
#include "control/eviction_pace.h"
#include "control/low_node_load.h"
#include "control/migration.h"

namespace berth::control {

// What moves pods, and how many at once.
struct DeschedulerConfig {
    MigrationLimits limits;
    EvictionPace pace;
    LoadRules load;  // off unless it is in a profile
};

// Koordinator's DeschedulerConfiguration (descheduler/v1alpha2): the arguments of LowNodeLoad and MigrationController,
// as far as there is something that they say; an argument that nothing heeds is refused. An error names the field and
// the value.
Result<DeschedulerConfig> read_descheduler_config(const Json& document);

}  // namespace berth::control
