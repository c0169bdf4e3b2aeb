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
            profiles = std::move(read->profiles);
        } else {
            error = read.error().message.substr(std::string(name).size() + 2);
        }
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

TEST(SchedulerConfig, NamesTheFieldThatIsWrong) {
    EXPECT_EQ(Read("profils: []").error, "profils: unknown field");
    EXPECT_EQ(Read("leaderElection: 3").error, "leaderElection: must be an object");
}

}  // namespace
}  // namespace berth::app
