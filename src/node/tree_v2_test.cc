// The whole way on a tree of plain files as cgroup v2 has it, with systemd's names: cpuset.cpus, cpu.max, cpu.stat,
// memory.current.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "node/meter.h"
#include "node/plan.h"
#include "node/reconcile.h"
#include "node/writer.h"

namespace berth::node {
namespace {

namespace fs = std::filesystem;

const std::string kLs =
    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice";
const std::string kBe =
    "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod99999999_2222_3333_4444_555555555555.slice";
const std::string kBestEffort = "kubepods.slice/kubepods-besteffort.slice";
const std::string kScope = "/cri-containerd-" + std::string(64, 'a') + ".scope";

class UnifiedTree {
public:
    UnifiedTree() {
        std::string name = fs::temp_directory_path() / "berth-v2-XXXXXX";
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        root = name;
        std::ofstream(root / "cgroup.controllers") << "cpuset cpu memory\n";
        for (const auto& group : groups()) {
            fs::create_directories(root / group);
            put(group, "cpuset.cpus", "");  // its parent's, as the kubelet leaves it
            put(group, "cpu.max", "max 100000");
            put(group, "cpu.stat", "usage_usec 0\nuser_usec 0\n");
            put(group, "memory.current", "4096");
            put(group, "memory.stat", "anon 5\ninactive_file 96\n");
        }
    }
    ~UnifiedTree() { fs::remove_all(root); }
    UnifiedTree(const UnifiedTree&) = delete;
    UnifiedTree& operator=(const UnifiedTree&) = delete;

    static std::vector<std::string> groups() {
        return {"kubepods.slice", kBestEffort, "kubepods.slice/kubepods-burstable.slice", kLs, kLs + kScope, kBe,
                kBe + kScope};
    }
    void put(const std::string& group, const std::string& file, const std::string& text) const {
        std::ofstream(root / group / file) << text << "\n";
    }
    std::string at(const std::string& group, const std::string& file) const {
        std::string line;
        std::ifstream in(root / group / file);
        std::getline(in, line);
        return line;
    }
    std::unique_ptr<Tree> open() const {
        auto tree = open_tree({.root = root, .systemd = true, .any_files = true});
        EXPECT_TRUE(tree) << tree.error().message;
        return std::move(*tree);
    }

    fs::path root;
};

NodePod unified_pod(const std::string& name, const std::string& uid, model::KubeQos kube, model::Qos qos) {
    NodePod pod;
    pod.ns = "ns";
    pod.name = name;
    pod.uid = uid;
    pod.kube = kube;
    pod.qos = qos;
    return pod;
}

// 8 CPUs in pairs, an LS and a BE pod.
Situation unified(Tree& tree) {
    Situation in;
    in.tree = tree.hierarchy();
    for (int32_t id = 0; id < 8; ++id) in.machine.cpus.push_back({id, id / 2, 0, 0});
    in.machine.numas = {{0, 0, {}}};
    in.pods = {unified_pod("ls", "11111111-2222-3333-4444-555555555555", model::KubeQos::Burstable, model::Qos::LS),
               unified_pod("be", "99999999-2222-3333-4444-555555555555", model::KubeQos::BestEffort, model::Qos::BE)};
    for (auto& pod : in.pods) add_containers(tree, pod);
    return in;
}

void reserve(Situation& in, const std::string& cpus) {
    in.node.meta.annotations.set("node.koordinator.sh/reservation", R"({"reservedCPUs":")" + cpus + "\"}");
}

TEST(UnifiedCgroups, CpusetsLeadThereOnceAndBack) {
    const UnifiedTree there;
    const auto tree = there.open();
    ASSERT_TRUE(tree->hierarchy().v2);
    Situation in = unified(*tree);
    ASSERT_EQ(in.pods[0].containers.size(), 1u) << "found by its scope";
    reserve(in, "0-1");
    in.slo.cpu_percent = 50;
    const auto done = reconcile(*tree, plan(in).goals);
    EXPECT_TRUE(done.troubles.empty()) << done.troubles.front();
    EXPECT_EQ(there.at(kLs, "cpuset.cpus"), "2-7");
    EXPECT_EQ(there.at(kLs + kScope, "cpuset.cpus"), "2-7");
    EXPECT_EQ(there.at(kBestEffort, "cpuset.cpus"), "2-3") << "50 % of 8, less 2";
    EXPECT_EQ(there.at(kBestEffort, "cpu.max"), "max 100000");
    EXPECT_EQ(reconcile(*tree, plan(in).goals).writes, 0u) << "nothing is written twice";
    EXPECT_TRUE(reconcile(*tree, restored(in)).troubles.empty());
    for (const auto& group : {kLs, kLs + kScope, kBestEffort}) EXPECT_EQ(there.at(group, "cpuset.cpus"), "0-7");
}

TEST(UnifiedCgroups, QuotaByCpuMax) {
    const UnifiedTree there;
    const auto tree = split_tree(there.open());
    ASSERT_TRUE(tree);
    Situation in = unified(**tree);
    in.slo.by_quota = true;
    in.usage.node.cpu = 8'000;
    in.usage.pods = {{"ns/ls", {8'000, 0}}};
    EXPECT_TRUE(reconcile(**tree, plan(in).goals).troubles.empty());
    EXPECT_EQ(there.at(kBestEffort, "cpu.max"), "2000 100000") << "the least: LS uses all";
    Usage seen = in.usage;
    read_current(**tree, seen);
    EXPECT_EQ(seen.quota, 2000);
    EXPECT_EQ(seen.cpuset, in.machine.ids()) << "the other policy is given back";
    in.slo.enable = false;
    EXPECT_TRUE(reconcile(**tree, plan(in).goals).troubles.empty());
    EXPECT_EQ(there.at(kBestEffort, "cpu.max"), "max 100000");
}

// An LSR pod has its cores exactly, and no quota.
TEST(UnifiedCgroups, CoresOfOnesOwn) {
    const UnifiedTree there;
    for (const auto& group : {kLs, kLs + kScope}) there.put(group, "cpu.max", "200000 100000");
    const auto tree = there.open();
    Situation in = unified(*tree);
    in.pods[0].qos = model::Qos::LSR;
    in.pods[0].cpus = model::CpuIds{4, 5};
    EXPECT_TRUE(reconcile(*tree, plan(in).goals).troubles.empty());
    for (const auto& group : {kLs, kLs + kScope}) {
        EXPECT_EQ(there.at(group, "cpuset.cpus"), "4-5");
        EXPECT_EQ(there.at(group, "cpu.max"), "max 100000");
    }
}

TEST(UnifiedCgroups, WhatRan) {
    const UnifiedTree there;
    const auto tree = there.open();
    const auto pods = unified(*tree).pods;
    const auto before = take_sample(*tree, pods, {0});
    ASSERT_TRUE(before);
    there.put(kLs, "cpu.stat", "usage_usec 3000000\nuser_usec 1\n");
    const auto after = *take_sample(*tree, pods, {2'000'000'000});
    const auto usage = usage_between(*before, after, pods);
    EXPECT_EQ(usage.of(pods[0]).cpu, 1500);
    EXPECT_EQ(usage.of(pods[0]).memory, 4000) << "without what could be dropped";
}

// Whenever it dies, no file is torn, and the next one leads to the same.
TEST(UnifiedCgroups, KilledAtAnyPoint) {
    const UnifiedTree there;
    const auto tree = there.open();
    Situation in = unified(*tree), other = in;
    reserve(in, "0-3");
    reserve(other, "6-7");
    const uint64_t seed = std::random_device{}();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    for (int kill = 0; kill < 100; ++kill) {
        const pid_t child = ::fork();
        if (child == 0) {
            const auto own = there.open();
            while (own) {
                reconcile(*own, plan(in).goals);
                reconcile(*own, plan(other).goals);
            }
            ::_exit(1);
        }
        ::usleep(static_cast<useconds_t>(random() % 3000));  // when it dies, not for whom
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        const bool first = kill % 2 == 0;
        ASSERT_TRUE(reconcile(*tree, plan(first ? in : other).goals).troubles.empty());
        for (const auto& group : {kLs, kLs + kScope}) EXPECT_EQ(there.at(group, "cpuset.cpus"), first ? "4-7" : "0-5");
    }
}

// The kernel's own: where v1 has the controllers there is no cpuset.cpus, but a group, its children and what ran in it.
TEST(UnifiedCgroups, OnTheKernelsOwn) {
    const fs::path mount =
        fs::exists("/sys/fs/cgroup/cgroup.controllers") ? "/sys/fs/cgroup" : "/sys/fs/cgroup/unified";
    if (!fs::exists(mount / "cgroup.controllers")) GTEST_SKIP() << "no cgroup v2 is mounted";
    const std::string name = fmt::format("berth-v2-{}", ::getpid());
    std::vector<fs::path> made;
    for (const auto& group :
         {std::string(), std::string("/kubepods.slice"), "/" + kBestEffort, "/" + kBe, "/" + kBe + kScope}) {
        std::error_code error;
        if (!fs::create_directory(mount.string() + "/" + name + group, error)) break;
        made.emplace_back(mount.string() + "/" + name + group);
    }
    const pid_t busy = made.size() == 5 ? ::fork() : -1;
    if (busy == 0) {
        for (std::atomic<uint64_t> i = 0;; ++i) {
        }
    }
    if (busy > 0) {
        std::ofstream(made.back() / "cgroup.procs") << busy << "\n";
        const auto tree = open_tree({.root = mount, .below = name, .systemd = true});
        EXPECT_TRUE(tree) << tree.error().message;
        if (tree) {
            EXPECT_TRUE((*tree)->hierarchy().v2);
            EXPECT_EQ(*(*tree)->children(kBe), std::vector<std::string>{kScope.substr(1)});
            const auto usage = [&] {
                const auto text = (*tree)->read(kBe, File::CpuUsage);
                return text ? std::stoll(text->substr(text->find(' '))) : -1;
            };
            const auto before = usage();
            for (int i = 0; i < 500 && usage() <= before; ++i) ::usleep(10'000);
            EXPECT_GT(usage(), before) << "microseconds";
            const auto cpus = (*tree)->read(kBe, File::Cpuset);
            EXPECT_TRUE(cpus || cpus.error().reason == Reason::NotFound);
        }
        ::kill(busy, SIGKILL);
        ::waitpid(busy, nullptr, 0);
    }
    for (auto group = made.rbegin(); group != made.rend(); ++group) {
        for (int i = 0; i < 500 && ::rmdir(group->c_str()) != 0; ++i) ::usleep(10'000);  // who was killed leaves
    }
    EXPECT_FALSE(fs::exists(mount / name));
    if (busy < 0) GTEST_SKIP() << "no group can be made below " << mount;
}

}  // namespace
}  // namespace berth::node
