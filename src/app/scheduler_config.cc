#include "app/scheduler_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "app/fields.h"
#include "base/yaml.h"
#include "sched/plugins/registry.h"

namespace berth::app {
namespace {

using sched::Profile;

constexpr std::string_view kVersion = "kubescheduler.config.k8s.io/v1";

// ---- plugins

bool named(const auto& plugin, std::string_view name) {
    return plugin->name() == name;
}

// The default profile without what `disabled` names; "*" is everything. What holds a reservation's promise stays.
void disable(Profile& profile, std::string_view point, std::string_view name) {
    const auto out = [&](std::string_view plugin) { return name == "*" || plugin == name; };
    if (point != "score") {
        std::erase_if(profile.filters,
                      [&](const auto& filter) { return out(filter->name()) && filter->name() != "Reservation"; });
    }
    if (point != "filter") {
        std::erase_if(profile.scorers, [&](const auto& each) { return out(each.scorer->name()); });
    }
}

// Puts a plugin of the default profile in its place again, with this weight.
bool enable(Profile& profile, std::string_view point, std::string_view name, int64_t weight) {
    const Profile& all = sched::default_profile();
    bool known = false;
    std::vector<std::shared_ptr<const sched::Filter>> filters;
    for (const auto& filter : all.filters) {
        const bool there = std::any_of(profile.filters.begin(), profile.filters.end(),
                                       [&](const auto& each) { return each->name() == filter->name(); });
        const bool wanted = point != "score" && named(filter, name);
        known = known || wanted;
        if (there || wanted) filters.push_back(filter);
    }
    std::vector<Profile::Weighted> scorers;
    for (const auto& scorer : all.scorers) {
        const auto there = std::find_if(profile.scorers.begin(), profile.scorers.end(),
                                        [&](const auto& each) { return each.scorer->name() == scorer.scorer->name(); });
        const bool wanted = point != "filter" && named(scorer.scorer, name);
        known = known || wanted;
        if (wanted) {
            scorers.push_back({scorer.scorer, weight == 0 ? scorer.weight : weight});
        } else if (there != profile.scorers.end()) {
            scorers.push_back(*there);
        }
    }
    profile.filters = std::move(filters);
    profile.scorers = std::move(scorers);
    return known;
}

Status read_point(Fields& plugins, std::string_view point, Profile& profile) {
    Fields set = plugins.object(point);
    for (Fields& item : set.list("disabled")) {
        disable(profile, point, item.text("name").value_or(""));
        item.ignore("weight");
        TRY(item.check());
    }
    for (Fields& item : set.list("enabled")) {
        const auto name = item.text("name").value_or("");
        const auto weight = item.integer("weight").value_or(0);
        if (weight < 0 || weight > 1'000'000) item.wrong("weight", "must be between 0 and 1000000");
        if (!enable(profile, point, name, weight)) {
            item.wrong("name", fmt::format("there is no plugin \"{}\" for {}", name, point));
        }
        TRY(item.check());
    }
    return set.check();
}

// ---- arguments of plugins

Status read_affinity_args(Fields& args, Profile& profile) {
    sched::plugins::AffinityWeights weights;
    weights.required_affinity = args.integer("hardPodAffinityWeight").value_or(1);
    if (weights.required_affinity < 0 || weights.required_affinity > 100) {
        args.wrong("hardPodAffinityWeight", "must be between 0 and 100");
    }
    weights.ignore_held_when_indifferent = args.flag("ignorePreferredTermsOfExistingPods").value_or(false);
    for (auto& each : profile.scorers) {
        if (named(each.scorer, "InterPodAffinity")) each.scorer = sched::plugins::pod_affinity_scorer(weights);
    }
    return {};
}

Result<model::SpreadConstraint> read_constraint(Fields& from) {
    model::SpreadConstraint out;
    out.max_skew = static_cast<int32_t>(std::clamp<int64_t>(from.integer("maxSkew").value_or(0), 0, INT32_MAX));
    if (out.max_skew < 1) from.wrong("maxSkew", "must be greater than 0");
    out.topology_key = from.text("topologyKey").value_or("");
    if (out.topology_key.empty()) from.wrong("topologyKey", "must be given");
    const auto when = from.text("whenUnsatisfiable").value_or("");
    out.hard = when == "DoNotSchedule";
    if (!out.hard && when != "ScheduleAnyway") {
        from.wrong("whenUnsatisfiable", "must be DoNotSchedule or ScheduleAnyway");
    }
    TRY(from.check());
    return out;
}

Status read_spread_args(Fields& args, Profile& profile) {
    const auto type = args.text("defaultingType").value_or("List");
    auto defaults = sched::plugins::system_spread_defaults();
    if (type != "System" && type != "List") args.wrong("defaultingType", "must be System or List");
    if (type == "List") defaults = {};
    for (Fields& item : args.list("defaultConstraints")) {
        if (type == "System") args.wrong("defaultConstraints", "must be empty when defaultingType is System");
        defaults.constraints.push_back(TRY(read_constraint(item)));
    }
    for (auto& filter : profile.filters) {
        if (named(filter, "PodTopologySpread")) filter = sched::plugins::spread_filter(defaults);
    }
    for (auto& each : profile.scorers) {
        if (named(each.scorer, "PodTopologySpread")) each.scorer = sched::plugins::spread_scorer(defaults);
    }
    return {};
}

// Of the scoring strategies only the default one.
Status read_fit_args(Fields& args, Profile&) {
    Fields strategy = args.object("scoringStrategy");
    if (strategy.text("type").value_or("LeastAllocated") != "LeastAllocated") {
        strategy.wrong("type", "only LeastAllocated is supported");
    }
    for (Fields& resource : strategy.list("resources")) {
        const auto name = resource.text("name").value_or("");
        if ((name != "cpu" && name != "memory") || resource.integer("weight").value_or(1) != 1) {
            resource.wrong("name", "only cpu and memory with weight 1 are supported");
        }
        TRY(resource.check());
    }
    return strategy.check();
}

// We look at every node, so the number of candidates needs no bound.
Status read_preemption_args(Fields& args, Profile&) {
    args.ignore("minCandidateNodesPercentage");
    args.ignore("minCandidateNodesAbsolute");
    return {};
}

struct Arguments {
    std::string_view plugin;
    Status (*read)(Fields& args, Profile& profile);
};
constexpr std::array kArguments{
    Arguments{"InterPodAffinity", read_affinity_args},
    Arguments{"PodTopologySpread", read_spread_args},
    Arguments{"NodeResourcesFit", read_fit_args},
    Arguments{"DefaultPreemption", read_preemption_args},
};

Status read_arguments(Fields& entry, Profile& profile) {
    const auto name = entry.text("name").value_or("");
    Fields args = entry.object("args");
    args.ignore("kind");
    args.ignore("apiVersion");
    const auto found =
        std::find_if(kArguments.begin(), kArguments.end(), [&](const auto& each) { return each.plugin == name; });
    if (found == kArguments.end()) {
        entry.wrong("name", fmt::format("arguments of \"{}\" are not supported", name));
    } else {
        TRY(found->read(args, profile));
    }
    TRY(args.check());
    return entry.check();
}

// ---- the whole file

Status read_profile(Fields& from, sched::Scheduler::Profiles& profiles) {
    const auto name = from.text("schedulerName").value_or("default-scheduler");
    Profile profile = sched::default_profile();
    Fields plugins = from.object("plugins");
    for (const auto* point : {"multiPoint", "filter", "score"}) TRY(read_point(plugins, point, profile));
    TRY(plugins.check());
    for (Fields& entry : from.list("pluginConfig")) TRY(read_arguments(entry, profile));
    from.ignore("percentageOfNodesToScore");
    if (!profiles.emplace(name, std::move(profile)).second) {
        from.wrong("schedulerName", fmt::format("\"{}\" is there twice", name));
    }
    return from.check();
}

Status read_election(Fields from, AttachedOptions& options) {
    options.leader_elect = from.flag("leaderElect").value_or(options.leader_elect);
    options.times.lease = from.duration("leaseDuration").value_or(options.times.lease);
    options.times.deadline = from.duration("renewDeadline").value_or(options.times.deadline);
    options.times.retry = from.duration("retryPeriod").value_or(options.times.retry);
    options.lease_name = from.text("resourceName").value_or(options.lease_name);
    options.lease_namespace = from.text("resourceNamespace").value_or(options.lease_namespace);
    if (from.text("resourceLock").value_or("leases") != "leases")
        from.wrong("resourceLock", "only leases is supported");
    return from.check();
}

// Requests are bounded by how many are under way, not by a rate.
Status read_connection(Fields from, AttachedOptions& options) {
    options.access.kubeconfig = from.text("kubeconfig").value_or(options.access.kubeconfig);
    for (const auto* field : {"qps", "burst", "contentType", "acceptContentTypes"}) from.ignore(field);
    return from.check();
}

Result<sched::Scheduler::Profiles> read_document(const Json& document, const std::string& default_name,
                                                 AttachedOptions& options) {
    Fields top(document, "");
    if (top.text("apiVersion").value_or("") != kVersion) top.wrong("apiVersion", fmt::format("must be {}", kVersion));
    if (top.text("kind").value_or("") != "KubeSchedulerConfiguration") {
        top.wrong("kind", "must be KubeSchedulerConfiguration");
    }
    TRY(read_election(top.object("leaderElection"), options));
    TRY(read_connection(top.object("clientConnection"), options));
    sched::Scheduler::Profiles profiles;
    for (Fields& profile : top.list("profiles")) TRY(read_profile(profile, profiles));
    if (top.integer("podInitialBackoffSeconds").value_or(1) != 1) top.wrong("podInitialBackoffSeconds", "must be 1");
    if (top.integer("podMaxBackoffSeconds").value_or(10) != 10) top.wrong("podMaxBackoffSeconds", "must be 10");
    for (const auto* field : {"parallelism", "percentageOfNodesToScore", "enableProfiling", "enableContentionProfiling",
                              "delayCacheUntilActive"}) {
        top.ignore(field);
    }
    TRY(top.check());
    if (profiles.empty()) profiles.emplace(default_name, sched::default_profile());
    return profiles;
}

}  // namespace

Result<sched::Scheduler::Profiles> read_scheduler_config(const std::string& path, const std::string& default_name,
                                                         AttachedOptions& options) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return base::bad_request(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    const auto wrong = [&](std::string_view what) { return base::bad_request(fmt::format("{}: {}", path, what)); };
    auto documents = base::parse_yaml(std::string(std::istreambuf_iterator<char>(in), {}));
    if (!documents) return wrong(documents.error().message);
    if (documents->size() != 1) return wrong("must hold one document");
    auto profiles = read_document(documents->front(), default_name, options);
    if (!profiles) return wrong(profiles.error().message);
    return profiles;
}

}  // namespace berth::app
