#pragma once

#include <chrono>
#include <initializer_list>
#include <string_view>

#include "base/clock.h"
#include "sched/plugins/registry.h"

namespace berth::model {
class Reader;
}

// The arguments of plugins in a profile's pluginConfig.
namespace berth::sched {

struct PluginArgs {
    plugins::FitOptions fit;
    plugins::FitStrategy strategy;
    std::vector<model::ResourceId> balanced{model::kCpu, model::kMemory};
    plugins::SpreadDefaults spread = plugins::system_spread_defaults();
    plugins::AffinityWeights affinity;
    plugins::AddedAffinity added;
    plugins::DeviceStrategy devices;
    base::Duration bind_timeout = std::chrono::seconds(600);
};

// Each fills in what its plugin's pluginConfig entry says; what is wrong ends up in the Reader's trouble.
void read_added_affinity(const model::Reader& args, PluginArgs& out);
void read_fit(const model::Reader& args, PluginArgs& out);
void read_volume_binding(const model::Reader& args, PluginArgs& out);
void read_spread(const model::Reader& args, PluginArgs& out);
void read_pod_affinity(const model::Reader& args, PluginArgs& out);
void read_devices(const model::Reader& args, PluginArgs& out);
void read_preemption(const model::Reader& args, PluginArgs& out);
void read_balanced(const model::Reader& args, PluginArgs& out);

// Every member must be one of these.
void only_known(const model::Reader& object, std::initializer_list<std::string_view> names);

}  // namespace berth::sched
