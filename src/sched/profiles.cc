#include "sched/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/reader.h"

namespace berth::sched {
namespace {

using model::Reader;

struct Named {
    std::string name;
    int64_t weight = 0;
};

struct PluginSet {
    std::vector<Named> enabled;
    std::set<std::string, std::less<>> disabled;

    bool disables(std::string_view name) const { return disabled.contains("*") || disabled.contains(name); }
    const Named* find(std::string_view name) const {
        const auto found =
            std::find_if(enabled.begin(), enabled.end(), [&](const Named& plugin) { return plugin.name == name; });
        return found == enabled.end() ? nullptr : &*found;
    }
};

const KnownPlugin* known(std::string_view name) {
    const auto& all = known_plugins();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& plugin) { return plugin.name == name; });
    return found == all.end() ? nullptr : &*found;
}

PluginSet read_set(const Reader& from) {
    PluginSet out;
    only_known(from, {"enabled", "disabled"});
    const auto name_of = [](const Reader& item) {
        const Reader name = item["name"];
        const std::string text(name.text());
        if (text != "*" && !known(text)) name.wrong(fmt::format("there is no plugin \"{}\"", text));
        return text;
    };
    const Reader enabled = from["enabled"];
    enabled.each([&](const Reader& item) {
        only_known(item, {"name", "weight"});
        const Reader weight = item["weight"];
        const Named plugin{name_of(item), weight.integer()};
        if (plugin.weight < 0 || plugin.weight > 1'000'000) weight.wrong("must be between 0 and 1000000");
        if (out.find(plugin.name)) item.wrong(fmt::format("\"{}\" is enabled twice", plugin.name));
        out.enabled.push_back(plugin);
    });
    const Reader disabled = from["disabled"];
    disabled.each([&](const Reader& item) {
        only_known(item, {"name", "weight"});
        out.disabled.insert(name_of(item));
    });
    return out;
}

// The defaults with the profile's own words over them: a plugin that is named again keeps its place.
std::vector<Named> multi_point(const PluginSet& own) {
    std::vector<Named> out;
    for (const auto& plugin : known_plugins()) {
        if (const Named* again = own.find(plugin.name)) {
            out.push_back(*again);
        } else if (!own.disables(plugin.name)) {
            out.push_back({std::string(plugin.name), plugin.weight});
        }
    }
    return out;
}

// The plugins of one point: first those that it names and that stand in multiPoint too, then the others of multiPoint,
// then the rest that it names.
template <class Serves>
std::vector<Named> at_point(const std::vector<Named>& multi, const PluginSet& own, Serves serves) {
    std::vector<Named> first;
    std::vector<Named> from_multi;
    for (const auto& plugin : own.enabled) {
        const bool both =
            std::any_of(multi.begin(), multi.end(), [&](const Named& m) { return m.name == plugin.name; });
        if (both && !own.disables(plugin.name)) first.push_back(plugin);
    }
    for (const auto& plugin : multi) {
        if (serves(*known(plugin.name)) && !own.find(plugin.name) && !own.disables(plugin.name)) {
            from_multi.push_back(plugin);
        }
    }
    for (const auto& plugin : own.enabled) {
        const bool there =
            std::any_of(first.begin(), first.end(), [&](const Named& f) { return f.name == plugin.name; });
        if (!there) from_multi.push_back(plugin);
    }
    first.insert(first.end(), from_multi.begin(), from_multi.end());
    return first;
}

std::shared_ptr<const Filter> filter_of(std::string_view name, const PluginArgs& args) {
    using namespace plugins;
    if (name == "NodeUnschedulable") return node_unschedulable();
    if (name == "NodeName") return node_name();
    if (name == "TaintToleration") return taint_filter();
    if (name == "NodeAffinity") return node_affinity_filter(args.added);
    if (name == "NodePorts") return node_ports();
    if (name == "NodeResourcesFit") return fit_filter(args.fit);
    if (name == "VolumeRestrictions") return volume_restrictions();
    if (name == "NodeVolumeLimits") return volume_limits();
    if (name == "VolumeBinding") return volume_binding();
    if (name == "VolumeZone") return volume_zone();
    if (name == "PodTopologySpread") return spread_filter(args.spread);
    if (name == "InterPodAffinity") return pod_affinity_filter();
    return nullptr;
}

std::shared_ptr<const Scorer> scorer_of(std::string_view name, const PluginArgs& args) {
    using namespace plugins;
    if (name == "TaintToleration") return taint_scorer();
    if (name == "NodeAffinity") return node_affinity_scorer(args.added);
    if (name == "NodeResourcesFit") return fit_scorer(args.strategy);
    if (name == "PodTopologySpread") return spread_scorer(args.spread);
    if (name == "InterPodAffinity") return pod_affinity_scorer(args.affinity);
    if (name == "NodeResourcesBalancedAllocation") return balanced_allocation(args.balanced);
    if (name == "ImageLocality") return image_locality();
    return nullptr;
}

PluginArgs read_args(const Reader& list) {
    PluginArgs args;
    std::set<std::string, std::less<>> seen;
    list.each([&](const Reader& item) {
        only_known(item, {"name", "args"});
        const Reader name = item["name"];
        const Reader given = item["args"];
        if (!known(name.text())) return name.wrong(fmt::format("there is no plugin \"{}\"", name.text()));
        if (!seen.insert(std::string(name.text())).second) return name.wrong("is there twice");
        read_plugin_args(name.text(), given, args);
    });
    return args;
}

// Before and after all others stands what reservations need; some plugins also speak before any row is looked at.
Profile assemble(const std::vector<Named>& filters, const std::vector<Named>& scorers, const PluginArgs& args) {
    const auto has = [&](std::string_view name) {
        return std::any_of(filters.begin(), filters.end(), [&](const Named& plugin) { return plugin.name == name; });
    };
    Profile profile;
    profile.filters.push_back(plugins::reservation_match());
    if (has("NodeAffinity")) profile.filters.push_back(plugins::named_nodes_filter());
    if (has("VolumeBinding")) profile.filters.push_back(plugins::volume_claims());
    for (const auto& plugin : filters) {
        if (auto made = filter_of(plugin.name, args)) profile.filters.push_back(std::move(made));
    }
    profile.filters.push_back(plugins::reservation_fit());
    for (const auto& plugin : scorers) {
        if (auto made = scorer_of(plugin.name, args)) {
            profile.scorers.push_back({std::move(made), plugin.weight == 0 ? 1 : plugin.weight});
        }
    }
    profile.bind_timeout = args.bind_timeout;
    return profile;
}

}  // namespace

const std::vector<KnownPlugin>& known_plugins() {
    static const std::vector<KnownPlugin> all{
        {"SchedulingGates"},
        {"PrioritySort"},
        {"NodeUnschedulable", true},
        {"NodeName", true},
        {"TaintToleration", true, true, 3},
        {"NodeAffinity", true, true, 2},
        {"NodePorts", true},
        {"NodeResourcesFit", true, true, 1},
        {"VolumeRestrictions", true},
        {"NodeVolumeLimits", true},
        {"VolumeBinding", true},
        {"VolumeZone", true},
        {"PodTopologySpread", true, true, 2},
        {"InterPodAffinity", true, true, 2},
        {"DefaultPreemption"},
        {"NodeResourcesBalancedAllocation", false, true, 1},
        {"ImageLocality", false, true, 1},
        {"DefaultBinder"},
    };
    return all;
}

Profile read_profile(const Reader& from, const std::vector<model::ResourceId>& ignored) {
    const Reader plugins = from["plugins"];
    only_known(plugins, {"preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve",
                         "permit", "preBind", "bind", "postBind", "multiPoint"});
    const std::vector<Named> multi = multi_point(read_set(plugins["multiPoint"]));
    const auto none = [](const KnownPlugin&) { return false; };
    const auto filters = at_point(multi, read_set(plugins["filter"]), [](const KnownPlugin& p) { return p.filters; });
    const auto scorers = at_point(multi, read_set(plugins["score"]), [](const KnownPlugin& p) { return p.scores; });
    const auto after = at_point(multi, read_set(plugins["postFilter"]),
                                [](const KnownPlugin& p) { return p.name == "DefaultPreemption"; });
    // These have no choice here; their names are checked all the same.
    for (const auto* point :
         {"preEnqueue", "queueSort", "preFilter", "preScore", "reserve", "permit", "preBind", "bind", "postBind"}) {
        at_point(multi, read_set(plugins[point]), none);
    }
    PluginArgs args = read_args(from["pluginConfig"]);
    args.fit.ignored.insert(args.fit.ignored.end(), ignored.begin(), ignored.end());
    Profile profile = assemble(filters, scorers, args);
    profile.preempts = !after.empty();
    return profile;
}

}  // namespace berth::sched
