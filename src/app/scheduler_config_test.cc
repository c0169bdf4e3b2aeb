#include "app/scheduler_config.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>

namespace berth::app {
namespace {

// What the text below apiVersion and kind gives, or the error behind the file's name.
struct Read {
    explicit Read(const std::string& text) {
        char name[] = "/tmp/berth-config-XXXXXX";
        ::close(::mkstemp(name));
        std::ofstream(name) << "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" << text;
        auto read = read_scheduler_config(name, "berth", options);
        ::unlink(name);
        if (read) {
            profiles = std::move(*read);
        } else {
            error = read.error().message.substr(std::string(name).size() + 2);
        }
    }
    std::string scorers(const std::string& profile) const {
        std::string out;
        for (const auto& [scorer, weight] : profiles.at(profile).scorers) {
            out += std::string(scorer->name()) + "=" + std::to_string(weight) + " ";
        }
        return out;
    }
    bool filters_by(const std::string& profile, std::string_view name) const {
        for (const auto& filter : profiles.at(profile).filters) {
            if (filter->name() == name) return true;
        }
        return false;
    }
    AttachedOptions options;
    sched::Scheduler::Profiles profiles;
    std::string error;
};

TEST(SchedulerConfig, SaysWhoLeadsAndWhere) {
    const Read read(
        "leaderElection: {leaderElect: true, leaseDuration: 30s, resourceName: mine, resourceLock: leases}\n"
        "clientConnection: {kubeconfig: /etc/k, qps: 100}\nparallelism: 16\n");
    ASSERT_EQ(read.error, "");
    EXPECT_TRUE(read.options.leader_elect);
    EXPECT_EQ(read.options.times.lease, std::chrono::seconds(30));
    EXPECT_EQ(read.options.times.retry, std::chrono::seconds(2));
    EXPECT_EQ(read.options.lease_name, "mine");
    EXPECT_EQ(read.options.access.kubeconfig, "/etc/k");
    EXPECT_TRUE(read.profiles.contains("berth"));
}

TEST(SchedulerConfig, ProfilesChangeWeightsAndPlugins) {
    const Read read(R"(profiles:
- schedulerName: one
  plugins:
    score:
      disabled: [{name: "*"}]
      enabled: [{name: ImageLocality, weight: 5}, {name: NodeResourcesFit}]
    filter:
      disabled: [{name: NodePorts}]
- schedulerName: two
  plugins: {multiPoint: {disabled: [{name: PodTopologySpread}]}}
  pluginConfig:
  - {name: InterPodAffinity, args: {kind: InterPodAffinityArgs, hardPodAffinityWeight: 7}}
)");
    ASSERT_EQ(read.error, "");
    EXPECT_EQ(read.scorers("one"), "NodeResourcesFit=1 ImageLocality=5 ");
    EXPECT_FALSE(read.filters_by("one", "NodePorts"));
    EXPECT_TRUE(read.filters_by("one", "NodeResourcesFit"));
    EXPECT_EQ(read.scorers("two"),
              "TaintToleration=3 NodeAffinity=2 NodeResourcesFit=1 InterPodAffinity=2 "
              "NodeResourcesBalancedAllocation=1 ImageLocality=1 ");
    EXPECT_FALSE(read.filters_by("two", "PodTopologySpread"));
}

TEST(SchedulerConfig, NamesTheFieldThatIsWrong) {
    EXPECT_EQ(Read("profils: []").error, "profils: there is no such field, or it is not supported");
    EXPECT_EQ(Read("profiles: [{plugins: {score: {enabled: [{name: Nope}]}}}]").error,
              "profiles[0].plugins.score.enabled[0].name: there is no plugin \"Nope\" for score");
    EXPECT_EQ(Read("profiles: [{}, {}]").error, "profiles[1].schedulerName: \"default-scheduler\" is there twice");
    EXPECT_EQ(Read("leaderElection: {leaseDuration: soon}").error,
              "leaderElection.leaseDuration: \"soon\" is no duration such as 15s");
    EXPECT_EQ(Read("profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: "
                   "[{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}}]}]")
                  .error,
              "profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: must be greater than 0");
    EXPECT_EQ(Read("profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: "
                   "MostAllocated}}}]}]")
                  .error,
              "profiles[0].pluginConfig[0].args.scoringStrategy.type: only LeastAllocated is supported");
    EXPECT_EQ(Read("extenders: [{}]").error, "extenders: there is no such field, or it is not supported");
    EXPECT_EQ(Read("leaderElection: 3").error, "leaderElection: must be an object");
}

}  // namespace
}  // namespace berth::app
