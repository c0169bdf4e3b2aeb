#include "sched/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json_view.h"
#include "model/reader.h"
#include "sched/profile_args.h"

namespace berth::sched {
namespace {

using model::Reader;

constexpr std::string_view kAll = "*";

struct Chosen {
    const Plugin* plugin;
    int64_t weight = 0;
};
using Choice = std::vector<Chosen>;

const Chosen* find(const Choice& choice, const Plugin& plugin) {
    const auto found =
        std::find_if(choice.begin(), choice.end(), [&](const Chosen& chosen) { return chosen.plugin == &plugin; });
    return found == choice.end() ? nullptr : &*found;
}

// What a profile says about one point.
struct PluginSet {
    Choice enabled;
    std::set<std::string, std::less<>> disabled;

    bool disables(const Plugin& plugin) const { return disabled.contains(kAll) || disabled.contains(plugin.name); }
};

// nullptr, and that is wrong: there is none.
const Plugin* named(const Reader& name) {
    for (const auto& plugin : all_plugins()) {
        if (plugin.name == name.text() && !plugin.ours) return &plugin;
    }
    name.wrong(fmt::format("there is no plugin \"{}\"", name.text()));
    return nullptr;
}

PluginSet read_set(const Reader& from) {
    PluginSet out;
    only_known(from, {"enabled", "disabled"});
    const Reader enabled = from["enabled"];
    enabled.each([&](const Reader& item) {
        only_known(item, {"name", "weight"});
        const Reader name = item["name"];
        const Reader weight = item["weight"];
        const Plugin* plugin = named(name);
        if (plugin == nullptr) return;
        const Chosen chosen{plugin, weight.integer()};
        if (chosen.weight < 0 || chosen.weight > 1'000'000) weight.wrong("must be between 0 and 1000000");
        if (find(out.enabled, *plugin)) item.wrong(fmt::format("\"{}\" is enabled twice", plugin->name));
        out.enabled.push_back(chosen);
    });
    const Reader disabled = from["disabled"];
    disabled.each([&](const Reader& item) {
        only_known(item, {"name", "weight"});
        const Reader name = item["name"];
        if (name.text() == kAll || named(name)) out.disabled.emplace(name.text());
    });
    return out;
}

// The defaults with the profile's own words over them: a plugin that is named again keeps its place.
Choice multi_point(const PluginSet& own) {
    Choice out;
    for (const auto& plugin : all_plugins()) {
        if (plugin.ours) continue;
        if (const Chosen* again = find(own.enabled, plugin)) {
            out.push_back(*again);
        } else if (!own.disables(plugin)) {
            out.push_back({&plugin, plugin.weight});
        }
    }
    return out;
}

// The plugins of one point: first those that it names and that stand in multiPoint too, then the others of multiPoint,
// then the rest that it names.
template <class Serves>
Choice at_point(const Choice& multi, const PluginSet& own, Serves serves) {
    Choice out;
    for (const auto& chosen : own.enabled) {
        if (find(multi, *chosen.plugin) && !own.disables(*chosen.plugin)) out.push_back(chosen);
    }
    const Choice first = out;
    for (const auto& chosen : multi) {
        const Plugin& plugin = *chosen.plugin;
        if (serves(plugin) && !find(own.enabled, plugin) && !own.disables(plugin)) out.push_back(chosen);
    }
    for (const auto& chosen : own.enabled) {
        if (!find(first, *chosen.plugin)) out.push_back(chosen);
    }
    return out;
}

PluginArgs read_args(const Reader& list) {
    PluginArgs args;
    std::set<std::string, std::less<>> seen;
    list.each([&](const Reader& item) {
        only_known(item, {"name", "args"});
        const Reader name = item["name"];
        const Reader given = item["args"];
        const Plugin* plugin = named(name);
        if (plugin == nullptr) return;
        if (!seen.emplace(name.text()).second) return name.wrong("is there twice");
        if (plugin->read_args) return plugin->read_args(given, args);
        given.wrong(fmt::format("plugin \"{}\" takes no arguments", plugin->name));
    });
    return args;
}

// Some plugins also speak before any row is looked at.
std::vector<std::shared_ptr<const Filter>> filters_of(const Choice& choice, const PluginArgs& args) {
    std::vector<std::shared_ptr<const Filter>> out;
    for (const auto& plugin : all_plugins()) {
        if (plugin.before && (plugin.ours || find(choice, plugin))) out.push_back(plugin.before(args));
    }
    for (const auto& [plugin, weight] : choice) {
        if (plugin->filter) out.push_back(plugin->filter(args));
    }
    for (const auto& plugin : all_plugins()) {
        if (plugin.ours && plugin.filter) out.push_back(plugin.filter(args));
    }
    return out;
}

std::vector<Profile::Weighted> scorers_of(const Choice& choice, const PluginArgs& args) {
    std::vector<Profile::Weighted> out;
    for (const auto& [plugin, weight] : choice) {
        if (plugin->scorer) out.push_back({plugin->scorer(args), weight == 0 ? 1 : weight});
    }
    return out;
}

}  // namespace

Profile read_profile(const Reader& from, const std::vector<model::ResourceId>& ignored) {
    const Reader plugins = from["plugins"];
    only_known(plugins, {"preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve",
                         "permit", "preBind", "bind", "postBind", "multiPoint"});
    const Choice multi = multi_point(read_set(plugins["multiPoint"]));
    const auto filters = at_point(multi, read_set(plugins["filter"]), [](const Plugin& p) { return p.filter; });
    const auto scorers = at_point(multi, read_set(plugins["score"]), [](const Plugin& p) { return p.scorer; });
    const auto after = at_point(multi, read_set(plugins["postFilter"]), [](const Plugin& p) { return p.preempts; });
    // These have no choice here; their names are checked all the same.
    for (const auto* point :
         {"preEnqueue", "queueSort", "preFilter", "preScore", "reserve", "permit", "preBind", "bind", "postBind"}) {
        read_set(plugins[point]);
    }
    PluginArgs args = read_args(from["pluginConfig"]);
    args.fit.ignored.insert(args.fit.ignored.end(), ignored.begin(), ignored.end());
    return {.filters = filters_of(filters, args),
            .scorers = scorers_of(scorers, args),
            .preempts = !after.empty(),
            .packs_devices = args.devices.packs(),
            .bind_timeout = args.bind_timeout};
}

const Profile& default_profile() {
    static const Profile profile = [] {
        base::JsonParser parser;
        std::string trouble;
        return read_profile(Reader(*parser.parse("{}"), trouble));
    }();
    return profile;
}

}  // namespace berth::sched
