#include "sched/profile_args.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/read_selectors.h"
#include "model/reader.h"

namespace berth::sched {
namespace {

using model::Reader;

int64_t in_range(const Reader& field, int64_t otherwise, int64_t least, int64_t most) {
    const int64_t value = field.integer(otherwise);
    if (value >= least && value <= most) return value;
    field.wrong(fmt::format("must be between {} and {}, but is {}", least, most, value));
    return otherwise;
}

std::optional<model::ResourceId> read_resource(const Reader& name) {
    const auto text = name.text();
    if (text.empty()) {
        name.wrong("is required");
        return std::nullopt;
    }
    const auto id = model::intern_resource(text);
    if (!id) name.wrong(id.error().message);
    return id ? std::optional(*id) : std::nullopt;
}

std::vector<std::pair<model::ResourceId, int64_t>> read_weights(const Reader& list) {
    std::vector<std::pair<model::ResourceId, int64_t>> out;
    list.each([&](const Reader& item) {
        only_known(item, {"name", "weight"});
        const Reader weight = item["weight"];
        const int64_t value = in_range(weight, 1, 1, 100);
        if (const auto id = read_resource(item["name"])) out.emplace_back(*id, value);
    });
    return out;
}

// Scores of 0 to 10 at rising utilizations of 0 to 100.
std::vector<plugins::ShapePoint> read_shape(const Reader& list) {
    std::vector<plugins::ShapePoint> out;
    list.each([&](const Reader& item) {
        only_known(item, {"utilization", "score"});
        const Reader utilization = item["utilization"];
        const Reader score = item["score"];
        const plugins::ShapePoint point{in_range(utilization, 0, 0, 100), in_range(score, 0, 0, 10) * 10};
        if (!out.empty() && point.utilization <= out.back().utilization) {
            utilization.wrong("must be above that of the point before");
        }
        out.push_back(point);
    });
    if (out.empty()) list.wrong("needs at least one point");
    return out;
}

void read_strategy(const Reader& from, plugins::FitStrategy& out) {
    if (!from.present()) return;
    only_known(from, {"type", "resources", "requestedToCapacityRatio"});
    const Reader type = from["type"];
    using Type = plugins::FitStrategy::Type;
    if (type.text() == "MostAllocated") {
        out.type = Type::MostAllocated;
    } else if (type.text() == "RequestedToCapacityRatio") {
        out.type = Type::RequestedToCapacityRatio;
    } else if (type.present() && type.text() != "LeastAllocated") {
        type.wrong(
            fmt::format("must be \"LeastAllocated\", \"MostAllocated\" or \"RequestedToCapacityRatio\", but is \"{}\"",
                        type.text()));
    }
    if (const Reader resources = from["resources"]; resources.present()) out.resources = read_weights(resources);
    const Reader ratio = from["requestedToCapacityRatio"];
    only_known(ratio, {"shape"});
    if (out.type == Type::RequestedToCapacityRatio) out.shape = read_shape(ratio["shape"]);
}

// {cpu: "8", gpus: 1, percent: 50, count: 30}: so many ask for so much.
void add_demands(const Reader& item, std::vector<GpuDemand>& out) {
    only_known(item, {"cpu", "gpus", "percent", "count"});
    const Reader cpu = item["cpu"], gpus = item["gpus"], percent = item["percent"], count = item["count"];
    GpuDemand demand;
    if (cpu.present()) {
        const auto read = model::Quantity::parse(cpu.text_or_number());
        if (!read || read->is_negative()) return cpu.wrong("must be a quantity");
        demand.cpu_milli = model::amount_of(model::kCpu, *read);
    }
    demand.count = static_cast<int32_t>(in_range(gpus, 1, 0, 64));
    demand.milli = static_cast<int32_t>(in_range(percent, 100, 1, 100) * kWholeGpu / 100);
    out.insert(out.end(), static_cast<size_t>(in_range(count, 1, 1, 1000)), demand);
}

}  // namespace

void only_known(const Reader& object, std::initializer_list<std::string_view> names) {
    object.entries([&](std::string_view key, const Reader& value) {
        if (std::find(names.begin(), names.end(), key) == names.end()) value.wrong("unknown field");
    });
}

void read_fit(const Reader& args, PluginArgs& out) {
    only_known(args, {"apiVersion", "kind", "ignoredResources", "ignoredResourceGroups", "scoringStrategy"});
    const Reader ignored = args["ignoredResources"];
    ignored.each([&](const Reader& item) {
        if (const auto id = read_resource(item)) out.fit.ignored.push_back(*id);
    });
    out.fit.ignored_groups = model::read_texts(args["ignoredResourceGroups"]);
    read_strategy(args["scoringStrategy"], out.strategy);
}

void read_balanced(const Reader& args, PluginArgs& out) {
    only_known(args, {"apiVersion", "kind", "resources"});
    const Reader resources = args["resources"];
    if (!resources.present()) return;
    out.balanced.clear();
    for (const auto& [id, weight] : read_weights(resources)) {
        if (weight != 1) resources.wrong("must have weights of 1");
        out.balanced.push_back(id);
    }
}

void read_spread(const Reader& args, PluginArgs& out) {
    only_known(args, {"apiVersion", "kind", "defaultConstraints", "defaultingType"});
    const Reader type = args["defaultingType"];
    const Reader list = args["defaultConstraints"];
    std::vector<model::SpreadConstraint> constraints;
    list.each([&](const Reader& item) {
        only_known(item, {"maxSkew", "topologyKey", "whenUnsatisfiable"});
        const Reader skew = item["maxSkew"];
        const Reader key = item["topologyKey"];
        const Reader when = item["whenUnsatisfiable"];
        model::SpreadConstraint constraint;
        constraint.max_skew = static_cast<int32_t>(in_range(skew, 0, 1, INT32_MAX));
        constraint.topology_key = key.text();
        if (constraint.topology_key.empty()) key.wrong("is required");
        constraint.hard = when.text() == "DoNotSchedule";
        if (!constraint.hard && when.text() != "ScheduleAnyway") {
            when.wrong("must be \"DoNotSchedule\" or \"ScheduleAnyway\"");
        }
        constraints.push_back(std::move(constraint));
    });
    if (type.text() == "List") {
        out.spread = {std::move(constraints), false};
    } else if (type.present() && type.text() != "System") {
        type.wrong(fmt::format("must be \"System\" or \"List\", but is \"{}\"", type.text()));
    } else if (!constraints.empty()) {
        list.wrong("must be empty when defaultingType is \"System\"");
    }
}

void read_pod_affinity(const Reader& args, PluginArgs& out) {
    only_known(args, {"apiVersion", "kind", "hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"});
    const Reader weight = args["hardPodAffinityWeight"];
    out.affinity.required_affinity = in_range(weight, 1, 0, 100);
    const Reader ignore = args["ignorePreferredTermsOfExistingPods"];
    out.affinity.ignore_held_when_indifferent = ignore.flag();
}

void read_added_affinity(const Reader& args, PluginArgs& out) {
    only_known(args, {"apiVersion", "kind", "addedAffinity"});
    const Reader added = args["addedAffinity"];
    only_known(added,
               {"requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"});
    const Reader required = added["requiredDuringSchedulingIgnoredDuringExecution"];
    only_known(required, {"nodeSelectorTerms"});
    const Reader terms = required["nodeSelectorTerms"];
    if (required.present()) {
        out.added.required = model::read_node_selector_terms(terms);
        if (out.added.required->empty()) terms.wrong("needs at least one term");
    }
    const Reader preferred = added["preferredDuringSchedulingIgnoredDuringExecution"];
    preferred.each([&](const Reader& item) {
        only_known(item, {"weight", "preference"});
        const Reader weight = item["weight"];
        const Reader preference = item["preference"];
        out.added.preferred.push_back(
            {static_cast<int32_t>(in_range(weight, 0, 1, 100)), model::read_node_selector_term(preference)});
    });
}

void read_volume_binding(const Reader& args, PluginArgs& out) {
    only_known(args, {"apiVersion", "kind", "bindTimeoutSeconds", "shape"});
    const Reader timeout = args["bindTimeoutSeconds"];
    out.bind_timeout = std::chrono::seconds(in_range(timeout, 600, 0, 86400));
}

// Checked, and without effect: every node is looked at.
void read_devices(const Reader& args, PluginArgs& out) {
    only_known(args, {"apiVersion", "kind", "allocator", "scoringStrategy"});
    const Reader strategy = args["scoringStrategy"];
    if (!strategy.present()) return;
    only_known(strategy, {"type", "resources", "mix"});
    const Reader type = strategy["type"];
    using Type = plugins::DeviceStrategy::Type;
    if (type.text() == "MostAllocated") {
        out.devices.type = Type::MostAllocated;
    } else if (const auto packing = packing_named(type.text())) {
        out.devices.type = Type::Packed;
        out.devices.packing = *packing;
    } else if (type.present() && type.text() != "LeastAllocated") {
        type.wrong(fmt::format("must be LeastAllocated, MostAllocated, BestFit, FGD or Stranding, but is \"{}\"",
                               type.text()));
    }
    const Reader mix = strategy["mix"];
    mix.each([&](const Reader& item) { add_demands(item, out.devices.mix); });
    const bool needs = out.devices.type == Type::Packed && out.devices.packing != Packing::BestFit;
    if (needs && out.devices.mix.empty()) mix.wrong("is required: how many ask for what");
}

void read_preemption(const Reader& args, PluginArgs&) {
    only_known(args, {"apiVersion", "kind", "minCandidateNodesPercentage", "minCandidateNodesAbsolute"});
    const Reader percentage = args["minCandidateNodesPercentage"];
    const Reader absolute = args["minCandidateNodesAbsolute"];
    in_range(percentage, 10, 0, 100);
    in_range(absolute, 100, 0, INT32_MAX);
}

}  // namespace berth::sched
