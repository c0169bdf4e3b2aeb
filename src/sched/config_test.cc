#include "sched/config.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/json_view.h"
#include "base/yaml.h"
#include "sched/live_test.h"
#include "sched/profile_args.h"

namespace berth::sched {
namespace {

constexpr const char* kHead = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

Result<Configuration> read(const std::string& yaml) {
    const auto documents = base::parse_yaml(kHead + yaml);
    if (!documents) return documents.error();
    base::JsonParser parser;
    const std::string text = base::to_text(documents->at(0));
    return read_configuration(*parser.parse(text));
}

std::string trouble(const std::string& yaml) {
    const auto got = read(yaml);
    return got ? "none" : got.error().message;
}

std::string words(const Profile& profile) {
    std::string out;
    for (const auto& filter : profile.filters) out += std::string(filter->name()) + " ";
    out += "|";
    for (const auto& [scorer, weight] : profile.scorers) out += fmt::format(" {}={}", scorer->name(), weight);
    return out;
}

std::string scorers_of(const std::string& plugins) {
    const auto got = read("profiles: [{plugins: " + plugins + "}]");
    if (!got) return got.error().message;
    const std::string all = words(got->profiles.at("default-scheduler"));
    return all.substr(all.find('|') + 1);
}

// kube-scheduler's order and weights, with what reservations need around them.
constexpr const char* kDefault =
    "Reservation NodeAffinity VolumeBinding ShareFit NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts "
    "NodeResourcesFit NodeNUMAResource DeviceShare VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone "
    "PodTopologySpread "
    "InterPodAffinity Reservation | TaintToleration=3 NodeAffinity=2 NodeResourcesFit=1 NodeNUMAResource=1 "
    "DeviceShare=1 PodTopologySpread=2 InterPodAffinity=2 "
    "NodeResourcesBalancedAllocation=1 ImageLocality=1";

TEST(ConfigTest, WithoutProfilesItIsTheDefault) {
    EXPECT_EQ(words(default_profile()), kDefault);
    EXPECT_TRUE(default_profile().preempts);
    EXPECT_EQ(default_profile().bind_timeout, std::chrono::seconds(600));
    const auto got = read("");
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_EQ(got->profiles.size(), 1u);
    EXPECT_EQ(words(got->profiles.at("default-scheduler")), words(default_profile()));
    const auto empty = read("profiles: [{schedulerName: a}, {schedulerName: b}]");
    ASSERT_TRUE(empty.ok()) << empty.error().message;
    EXPECT_EQ(words(empty->profiles.at("b")), words(default_profile()));
}

TEST(ConfigTest, PluginsAreTurnedOnAndOffAndWeighed) {
    EXPECT_EQ(scorers_of("{score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality, weight: 5}]}}"),
              " ImageLocality=5");
    EXPECT_EQ(scorers_of("{score: {disabled: [{name: TaintToleration}, {name: NodeAffinity}, {name: PodTopologySpread},"
                         " {name: InterPodAffinity}]}}"),
              " NodeResourcesFit=1 NodeNUMAResource=1 DeviceShare=1 NodeResourcesBalancedAllocation=1"
              " ImageLocality=1");
    EXPECT_EQ(scorers_of("{multiPoint: {disabled: [{name: '*'}], enabled: [{name: TaintToleration, weight: 7},"
                         " {name: NodeResourcesFit}]}}"),
              " TaintToleration=7 NodeResourcesFit=1");
    EXPECT_EQ(scorers_of("{multiPoint: {enabled: [{name: TaintToleration, weight: 7}]}}").substr(0, 18),
              " TaintToleration=7");
    // Named at its own point it comes first, with that weight.
    EXPECT_EQ(scorers_of("{score: {enabled: [{name: ImageLocality, weight: 9}]}}").substr(0, 34),
              " ImageLocality=9 TaintToleration=3");
}

// Each filter and scorer says which row made it: what may cure its refusal is read there.
TEST(ConfigTest, APluginIsNamedByItsRow) {
    const PluginArgs args;
    for (const Plugin& row : all_plugins()) {
        EXPECT_EQ(&plugin_of(row.id), &row) << row.name;
        EXPECT_EQ(name_of(row.id), row.name);
        if (row.before) {
            EXPECT_EQ(row.before(args)->plugin(), row.id) << row.name;
        }
        if (row.filter) {
            EXPECT_EQ(row.filter(args)->plugin(), row.id) << row.name;
            EXPECT_NE(row.cured_by, ledger::kAnyChange) << row.name << ": what cures it?";
        }
        if (row.scorer) {
            EXPECT_EQ(row.scorer(args)->plugin(), row.id) << row.name;
            EXPECT_GT(row.weight, 0) << row.name;
        }
    }
}

TEST(ConfigTest, FiltersMayBeLeftOut) {
    const auto got = read(
        "profiles: [{plugins: {filter: {disabled: [{name: NodePorts}]}, postFilter: {disabled: [{name: "
        "DefaultPreemption}]}}}]");
    ASSERT_TRUE(got.ok()) << got.error().message;
    const Profile& profile = got->profiles.at("default-scheduler");
    EXPECT_EQ(words(profile).find("NodePorts"), std::string::npos);
    EXPECT_EQ(profile.filters.size(), default_profile().filters.size() - 1);
    EXPECT_FALSE(profile.preempts);
}

TEST(ConfigTest, TheRestIsRead) {
    const auto got = read(
        "podInitialBackoffSeconds: 3\npodMaxBackoffSeconds: 30\npercentageOfNodesToScore: 50\n"
        "parallelism: 16\nclientConnection: {kubeconfig: /etc/kube, qps: 50, burst: 100}\n"
        "leaderElection: {leaderElect: false, leaseDuration: 30s, renewDeadline: 20s, retryPeriod: 5s, "
        "resourceName: berth, resourceNamespace: ops, resourceLock: leases}\n"
        "profiles: [{pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: 5}}]}]");
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->options.first_backoff, std::chrono::seconds(3));
    EXPECT_EQ(got->options.longest_backoff, std::chrono::seconds(30));
    EXPECT_EQ(got->kubeconfig, "/etc/kube");
    EXPECT_EQ(got->leader_election.elect, false);
    EXPECT_EQ(got->leader_election.lease, std::chrono::seconds(30));
    EXPECT_EQ(got->leader_election.name, "berth");
    EXPECT_EQ(got->profiles.at("default-scheduler").bind_timeout, std::chrono::seconds(5));
}

TEST(ConfigTest, MistakesAreNamedWithTheirPath) {
    EXPECT_EQ(trouble("profils: []"), "profils: unknown field");
    EXPECT_EQ(trouble("profiles: [{schedulerName: a, plugin: {}}]"), "profiles[0].plugin: unknown field");
    EXPECT_EQ(trouble("profiles: [{plugins: {filter: {enabled: [{name: Foo}]}}}]"),
              "profiles[0].plugins.filter.enabled[0].name: there is no plugin \"Foo\"");
    EXPECT_EQ(trouble("profiles: [{plugins: {filter: {enabled: [{name: '*'}]}}}]"),
              "profiles[0].plugins.filter.enabled[0].name: there is no plugin \"*\"");
    EXPECT_EQ(trouble("profiles: [{plugins: {filter: {disabled: [{name: Reservation}]}}}]"),
              "profiles[0].plugins.filter.disabled[0].name: there is no plugin \"Reservation\"");
    EXPECT_EQ(trouble("profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}}]"),
              "profiles[0].plugins.score.enabled[0].weight: must be between 0 and 1000000");
    EXPECT_EQ(trouble("profiles: [{plugins: {score: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}}}]"),
              "profiles[0].plugins.score.enabled[1]: \"ImageLocality\" is enabled twice");
    EXPECT_EQ(trouble("profiles: [{}, {schedulerName: b}]"), "profiles[0].schedulerName: is required");
    EXPECT_EQ(trouble("profiles: [{schedulerName: b}, {schedulerName: b}]"),
              "profiles[1].schedulerName: \"b\" is there twice");
    EXPECT_EQ(trouble("podInitialBackoffSeconds: 0"), "podInitialBackoffSeconds: must be between 1 and 86400");
    EXPECT_EQ(trouble("podInitialBackoffSeconds: 20"),
              "podMaxBackoffSeconds: must not be below podInitialBackoffSeconds, nor above 86400");
    EXPECT_EQ(trouble("leaderElection: {leaseDuration: x}").substr(0, 30), "leaderElection.leaseDuration: ");
    EXPECT_EQ(trouble("leaderElection: {leaseDuration: 5s}"),
              "leaderElection.leaseDuration: must be longer than renewDeadline");
    const auto args = [](const std::string& plugin, const std::string& given) {
        return trouble("profiles: [{pluginConfig: [{name: " + plugin + ", args: " + given + "}]}]");
    };
    const std::string at = "profiles[0].pluginConfig[0].args.";
    EXPECT_EQ(args("NodeResourcesFit", "{scoringStrategy: {type: Best}}"),
              at + "scoringStrategy.type: must be \"LeastAllocated\", \"MostAllocated\" or "
                   "\"RequestedToCapacityRatio\", but is \"Best\"");
    EXPECT_EQ(args("NodeResourcesFit", "{scoringStrategy: {resources: [{name: cpu, weight: 0}]}}"),
              at + "scoringStrategy.resources[0].weight: must be between 1 and 100, but is 0");
    EXPECT_EQ(args("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio}}"),
              at + "scoringStrategy.requestedToCapacityRatio.shape: needs at least one point");
    EXPECT_EQ(args("NodeResourcesFit", "{ignoredResource: [a]}"), at + "ignoredResource: unknown field");
    EXPECT_EQ(args("PodTopologySpread", "{defaultingType: Some}"),
              at + "defaultingType: must be \"System\" or \"List\", but is \"Some\"");
    EXPECT_EQ(args("PodTopologySpread",
                   "{defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: "
                   "DoNotSchedule}]}"),
              at + "defaultConstraints: must be empty when defaultingType is \"System\"");
    EXPECT_EQ(args("InterPodAffinity", "{hardPodAffinityWeight: 101}"),
              at + "hardPodAffinityWeight: must be between 0 and 100, but is 101");
    EXPECT_EQ(args("DefaultPreemption", "{minCandidateNodesPercentage: 101}"),
              at + "minCandidateNodesPercentage: must be between 0 and 100, but is 101");
    EXPECT_EQ(args("DeviceShare", "{scoringStrategy: {type: Most}}"),
              at + "scoringStrategy.type: must be LeastAllocated, MostAllocated, BestFit, FGD or Stranding, but is "
                   "\"Most\"");
    EXPECT_EQ(args("DeviceShare", "{scoringStrategy: {type: FGD}}"),
              at + "scoringStrategy.mix: is required: how many ask for what");
    EXPECT_EQ(args("NodePorts", "{a: 1}"), "profiles[0].pluginConfig[0].args: plugin \"NodePorts\" takes no arguments");
    EXPECT_EQ(read_configuration(*base::JsonParser().parse("{}")).error().message,
              "apiVersion: must be \"kubescheduler.config.k8s.io/v1\", but is \"\"");
}

TEST(ConfigTest, ExtendersAreRead) {
    const auto got = read(
        "extenders:\n- {urlPrefix: 'http://127.0.0.1:9000/gpu/', filterVerb: filter, prioritizeVerb: "
        "prioritize, weight: 5, nodeCacheCapable: true, ignorable: true, httpTimeout: 30s, "
        "managedResources: [{name: x.io/gpu, ignoredByScheduler: true}]}");
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_EQ(got->options.extenders.size(), 1u);
    const Extender& extender = got->options.extenders[0];
    EXPECT_EQ(extender.url, "http://127.0.0.1:9000/gpu");
    EXPECT_EQ(extender.weight, 5);
    EXPECT_EQ(extender.timeout, std::chrono::seconds(5)) << "never longer";
    EXPECT_TRUE(extender.node_cache_capable && extender.ignorable);
    EXPECT_EQ(extender.managed.size(), 1u);
    const auto& filters = got->profiles.at("default-scheduler").filters;
    EXPECT_TRUE(
        std::none_of(filters.begin(), filters.end(), [](const auto& f) { return f->row_term() == RowTerm::Fit; }));
    EXPECT_EQ(trouble("extenders: [{urlPrefix: example.com}]"),
              "extenders[0].urlPrefix: must begin with http:// or https://, but is \"example.com\"");
    EXPECT_EQ(trouble("extenders: [{urlPrefix: 'http://a', prioritizeVerb: p}]"),
              "extenders[0].weight: must be between 1 and 1000000");
    EXPECT_EQ(trouble("extenders: [{urlPrefix: 'http://a', bindVerb: b}, {urlPrefix: 'http://b', bindVerb: b}]"),
              "extenders[1].bindVerb: only one extender may bind");
    EXPECT_EQ(trouble("extenders: [{urlPrefix: 'http://a', verb: b}]"), "extenders[0].verb: unknown field");
}

// A scheduler with two profiles: one packs, the other spreads.
class TwoProfilesTest : public LiveTest {
protected:
    TwoProfilesTest() : LiveTest({}, profiles()) {
        node("n1", 4000);
        node("n2", 4000);
        bound("there", 2000, 0, "n2");
    }
    static Scheduler::Profiles profiles() {
        auto got = read(
            "profiles:\n- {schedulerName: berth}\n- schedulerName: packs\n  pluginConfig:\n  - name: "
            "NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, "
            "weight: 1}]}}\n  plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}");
        EXPECT_TRUE(got.ok()) << got.error().message;
        return std::move(got->profiles);
    }
};

TEST_F(TwoProfilesTest, EachPodGoesByItsOwn) {
    pending("spread", 1000, 0);
    model::Pod& packed = make("packed", 1000, 0);
    auto spec = std::make_shared<model::PodSpec>(*packed.spec);
    spec->scheduler_name = "packs";
    packed.spec = spec;
    put(packed);
    model::Pod& foreign = make("foreign", 1000, 0);
    auto other = std::make_shared<model::PodSpec>(*foreign.spec);
    other->scheduler_name = "somebody";
    foreign.spec = other;
    put(foreign);
    step();
    EXPECT_EQ(told(), (Lines{"bind spread to n1", "bind packed to n2"}));
}

}  // namespace
}  // namespace berth::sched
