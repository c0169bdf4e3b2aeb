#pragma once

#include <string>
#include <vector>

#include "sched/plugin.h"
#include "sched/profile_args.h"

namespace berth::model {
class Reader;
}

namespace berth::sched {

// Which plugins of this build a name stands for, in kube-scheduler's order and with its weights.
struct KnownPlugin {
    std::string_view name;
    bool filters = false;
    bool scores = false;
    int64_t weight = 0;
};
const std::vector<KnownPlugin>& known_plugins();

// The profile that a KubeSchedulerProfile's `plugins` and `pluginConfig` describe, over the defaults. What reservations
// need is always part of it.
// `ignored`: resources that extenders answer for.
Profile read_profile(const model::Reader& profile, const std::vector<model::ResourceId>& ignored = {});

}  // namespace berth::sched
