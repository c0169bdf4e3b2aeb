#pragma once

#include <vector>

#include "sched/plugin.h"

namespace berth::model {
class Reader;
}

namespace berth::sched {

// The profile that a KubeSchedulerProfile's `plugins` and `pluginConfig` describe, over the defaults. What reservations
// need is always part of it.
// `ignored`: resources that extenders answer for.
Profile read_profile(const model::Reader& profile, const std::vector<model::ResourceId>& ignored = {});

}  // namespace berth::sched
