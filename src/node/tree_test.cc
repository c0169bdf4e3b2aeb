#include "node/tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "model/cpu_set.h"
#include "node/evict.h"
#include "node/meter.h"
#include "node/reconcile.h"
#include "node/writer.h"

namespace berth::node {
namespace {

namespace fs = std::filesystem;

const std::string kUid = "11111111-2222-3333-4444-555555555555";
const std::string kOther = "99999999-2222-3333-4444-555555555555";
const std::string kId(64, 'a');
const std::string kSandbox(64, 'b');

// A tree of plain files as cgroup v1 has it, which goes with the object.
class Rehearsal {
public:
    Rehearsal() {
        std::string name = fs::temp_directory_path() / "berth-tree-XXXXXX";
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        root = name;
        for (const auto* controller : {"cpuset", "cpu", "cpuacct", "memory"}) fs::create_directories(root / controller);
        group("kubepods");
        group("kubepods/besteffort");
        group("kubepods/burstable");
    }
    ~Rehearsal() { fs::remove_all(root); }
    Rehearsal(const Rehearsal&) = delete;
    Rehearsal& operator=(const Rehearsal&) = delete;

    void group(const std::string& name) {
        put("cpuset", name, "cpuset.cpus", "0-7");
        put("cpu", name, "cpu.cfs_quota_us", "-1");
        put("cpuacct", name, "cpuacct.usage", "0");
        put("memory", name, "memory.usage_in_bytes", "4096");
        put("memory", name, "memory.stat", "cache 5\ntotal_inactive_file 96\n");
    }
    void pod(const std::string& name) {
        group(name);
        group(name + "/" + kId);
        group(name + "/" + kSandbox);
    }
    void put(const std::string& controller, const std::string& name, const std::string& file, const std::string& text) {
        fs::create_directories(root / controller / name);
        std::ofstream(root / controller / name / file) << text << "\n";
    }
    std::unique_ptr<Tree> open() const {
        auto tree = open_tree({.root = root, .any_files = true});
        EXPECT_TRUE(tree) << tree.error().message;
        return std::move(*tree);
    }

    fs::path root;
};

NodePod pod_of(const std::string& name, const std::string& uid, model::KubeQos kube, model::Qos qos) {
    NodePod out;
    out.ns = "ns";
    out.name = name;
    out.uid = uid;
    out.kube = kube;
    out.qos = qos;
    return out;
}

Situation eight() {
    Situation out;
    for (int32_t id = 0; id < 8; ++id) out.machine.cpus.push_back({id, id / 2, 0, 0});
    out.machine.numas = {{0, 0, {}}};
    out.node.meta.name = "n";
    return out;
}

std::string at(Tree& tree, const std::string& group, File file = File::Cpuset) {
    const auto text = tree.read(group, file);
    return text ? *text : text.error().message;
}

TEST(CgroupTree, WritesAndReadsBack) {
    const Rehearsal there;
    const auto tree = there.open();
    ASSERT_TRUE(tree->write("kubepods/besteffort", File::Cpuset, "2-3"));
    EXPECT_EQ(at(*tree, "kubepods/besteffort"), "2-3");
    ASSERT_TRUE(tree->write("kubepods/besteffort", File::Quota, "200000"));
    ASSERT_TRUE(tree->write("kubepods/besteffort", File::Quota, "-1"));
    EXPECT_EQ(at(*tree, "kubepods/besteffort", File::Quota), "-1");
    EXPECT_EQ(*tree->children("kubepods"), (std::vector<std::string>{"besteffort", "burstable"}));
    EXPECT_FALSE(tree->write("kubepods", File::MemoryStat, "0"));
}

TEST(CgroupTree, NamesThatAreNoneAreRefused) {
    const Rehearsal there;
    const auto tree = there.open();
    for (const char* group : {"", "/", "system.slice", "kubepods/..", "kubepods/../../etc", "kubepods//a", "kubepods/",
                              "/kubepods", "kubepods/a b", "kubepods/\n", "kubepods/./a", "kubepodsx"}) {
        const auto done = tree->write(group, File::Cpuset, "0");
        ASSERT_FALSE(done) << group;
        EXPECT_NE(done.error().message.find("not a name of the kubelet's groups"), std::string::npos);
    }
    EXPECT_FALSE(check_group("kubepods/" + std::string(600, 'a')));
    EXPECT_TRUE(check_group("kubepods.slice/kubepods-besteffort.slice"));
}

TEST(CgroupTree, LinksAreNotFollowed) {
    const Rehearsal there;
    const fs::path outside = there.root / "outside";
    fs::create_directories(outside);
    std::ofstream(outside / "cpuset.cpus") << "secret\n";
    fs::create_directory_symlink(outside, there.root / "cpuset/kubepods/link");
    fs::remove(there.root / "cpuset/kubepods/burstable/cpuset.cpus");
    fs::create_symlink(outside / "cpuset.cpus", there.root / "cpuset/kubepods/burstable/cpuset.cpus");
    const auto tree = there.open();
    EXPECT_FALSE(tree->write("kubepods/link", File::Cpuset, "0"));
    EXPECT_FALSE(tree->write("kubepods/burstable", File::Cpuset, "0"));
    std::string still;
    std::getline(std::ifstream(outside / "cpuset.cpus"), still);
    EXPECT_EQ(still, "secret");
    EXPECT_EQ(*tree->children("kubepods"), (std::vector<std::string>{"besteffort", "burstable"}));
}

TEST(CgroupTree, WhatIsNoFileOrHasGoneIsASentence) {
    const Rehearsal there;
    fs::remove(there.root / "cpu/kubepods/burstable/cpu.cfs_quota_us");
    fs::create_directory(there.root / "cpu/kubepods/burstable/cpu.cfs_quota_us");
    const auto tree = there.open();
    EXPECT_FALSE(tree->write("kubepods/burstable", File::Quota, "1"));
    const auto gone = tree->read("kubepods/burstable/pod" + kUid, File::Cpuset);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().reason, Reason::NotFound);
    EXPECT_FALSE(fs::exists(there.root / "cpuset/kubepods/burstable" / ("pod" + kUid))) << "nothing is made";
    const auto plain = open_tree({.root = there.root});
    ASSERT_FALSE(plain);
    EXPECT_NE(plain.error().message.find("no file system of cgroups"), std::string::npos);
}

TEST(CgroupWriter, AnotherProcessWrites) {
    const Rehearsal there;
    auto split = split_tree(there.open());
    ASSERT_TRUE(split);
    ASSERT_TRUE((*split)->write("kubepods/besteffort", File::Cpuset, "4"));
    EXPECT_EQ(at(**split, "kubepods/besteffort"), "4");
    const auto refused = (*split)->write("kubepods/../x", File::Cpuset, "4");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("not a name"), std::string::npos);
    EXPECT_FALSE((*split)->write("kubepods", File::Cpuset, "4\n5"));
    EXPECT_FALSE((*split)->write("kubepods", File::Cpuset, ""));
    EXPECT_FALSE((*split)->write("kubepods", File::Cpuset, std::string(5000, '1')));
    EXPECT_FALSE((*split)->write("kubepods", File::MemoryUsage, "4"));
    EXPECT_EQ(at(**split, "kubepods"), "0-7");
}

// Files that it was told of when it began, as they are now, and no others; links are followed, folders are none.
TEST(CgroupWriter, OpensWhatTheOtherMayNot) {
    const Rehearsal there;
    const fs::path state = fs::path(there.root) / "state", folder = fs::path(there.root) / "folder";
    fs::create_directory(folder);
    std::ofstream(state) << "first";
    auto split = split_tree(there.open(), {state, folder, fs::path(there.root) / "none"});
    ASSERT_TRUE(split);
    const auto text = [&] {
        const auto fd = (*split)->open_file(0);
        std::string out(100, '\0');
        const auto got = fd ? ::read(fd->get(), out.data(), out.size()) : -1;
        out.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
        EXPECT_LT(fd ? ::write(fd->get(), "x", 1) : -1, 0) << "to be read only";
        return out;
    };
    EXPECT_EQ(text(), "first");
    fs::remove(state);
    std::ofstream(fs::path(there.root) / "second") << "second";
    fs::create_symlink("second", state);
    EXPECT_EQ(text(), "second");
    EXPECT_EQ((*split)->open_file(1).error().message, "cannot read " + folder.string() + ": it is no file");
    EXPECT_EQ((*split)->open_file(2).error().reason, Reason::NotFound);
    EXPECT_EQ((*split)->open_file(3).error().message, "a file that is none");
    EXPECT_EQ((*split)->open_file(1'000'000).error().message, "a file that is none");
    ASSERT_TRUE((*split)->write("kubepods/besteffort", File::Cpuset, "4")) << "orders go on";
}

TEST(CgroupWriter, OrdersThatAreNoneAreAnsweredOrEndIt) {
    const Rehearsal there;
    const auto tree = there.open();
    const uint64_t seed = std::random_device{}();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(ends[0]);
        serve_orders(ends[1], *tree);
        ::_exit(7);
    }
    ::close(ends[1]);
    for (int i = 0; i < 200; ++i) {
        std::string noise(4094, '\0');  // an order's size
        for (char& c : noise) c = static_cast<char>(random());
        std::string answer(2048, '\0');
        if (::send(ends[0], noise.data(), noise.size(), MSG_NOSIGNAL) < 0) break;
        if (::recv(ends[0], answer.data(), answer.size(), 0) <= 0) break;
    }
    ::send(ends[0], "short", 5, MSG_NOSIGNAL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(ends[0]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "it ends, it does not die";
    EXPECT_EQ(at(*tree, "kubepods"), "0-7");
}

TEST(Reconcile, LeadsThereOnceAndBack) {
    Rehearsal there;
    there.pod("kubepods/pod" + kUid);
    there.pod("kubepods/besteffort/pod" + kOther);
    const auto tree = there.open();
    Situation in = eight();
    in.node.meta.annotations.set("node.koordinator.sh/reservation", R"({"reservedCPUs":"0-1"})");
    in.pods = {pod_of("ls", kUid, model::KubeQos::Guaranteed, model::Qos::LS),
               pod_of("be", kOther, model::KubeQos::BestEffort, model::Qos::BE)};
    for (auto& pod : in.pods) add_containers(*tree, pod);
    ASSERT_EQ(in.pods[0].containers.size(), 2u) << "its sandbox too";
    in.slo.cpu_percent = 50;
    const auto first = reconcile(*tree, plan(in).goals);
    EXPECT_TRUE(first.troubles.empty());
    EXPECT_EQ(at(*tree, "kubepods/pod" + kUid + "/" + kSandbox), "2-7");
    EXPECT_EQ(at(*tree, "kubepods/besteffort"), "2-3");
    EXPECT_EQ(at(*tree, "kubepods/besteffort/pod" + kOther + "/" + kId), "2-3");
    EXPECT_EQ(reconcile(*tree, plan(in).goals).writes, 0u) << "nothing is written twice";
    const auto back = reconcile(*tree, restored(in));
    EXPECT_TRUE(back.troubles.empty());
    for (const auto* group : {"kubepods/besteffort", "kubepods/burstable"}) EXPECT_EQ(at(*tree, group), "0-7");
    EXPECT_EQ(at(*tree, "kubepods/besteffort/pod" + kOther + "/" + kId), "0-7");
    EXPECT_EQ(at(*tree, "kubepods/pod" + kUid), "0-7");
}

TEST(Reconcile, AGroupThatVanishedIsLeftOut) {
    Rehearsal there;
    const auto tree = there.open();
    Situation in = eight();
    in.pods = {pod_of("ls", kUid, model::KubeQos::Burstable, model::Qos::LS)};
    EXPECT_TRUE(reconcile(*tree, plan(in).goals).troubles.empty());
}

// Every group within its parent, never none, never one of the reserved cores once it is back: whenever it dies.
TEST(Reconcile, KilledAtAnyPoint) {
    Rehearsal there;
    there.pod("kubepods/besteffort/pod" + kOther);
    there.pod("kubepods/burstable/pod" + kUid);
    Situation in = eight();
    in.pods = {pod_of("ls", kUid, model::KubeQos::Burstable, model::Qos::LS),
               pod_of("be", kOther, model::KubeQos::BestEffort, model::Qos::BE)};
    Situation other = in;
    in.node.meta.annotations.set("node.koordinator.sh/reservation", R"({"reservedCPUs":"0-3"})");
    other.node.meta.annotations.set("node.koordinator.sh/reservation", R"({"reservedCPUs":"6-7"})");
    const auto tree = there.open();
    for (auto* each : {&in, &other}) {
        for (auto& pod : each->pods) add_containers(*tree, pod);
    }
    const uint64_t seed = std::random_device{}();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    std::vector<std::string> groups;
    for (const auto& goal : plan(in).goals) groups.push_back(goal.group);
    for (int kill = 0; kill < 200; ++kill) {
        const pid_t child = ::fork();
        if (child == 0) {
            const auto own = open_tree({.root = there.root, .any_files = true});
            while (own) {
                reconcile(**own, plan(in).goals);
                reconcile(**own, plan(other).goals);
            }
            ::_exit(1);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));  // when it dies, not for whom
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        for (const auto& group : groups) {
            std::string fault;
            const auto its = model::read_cpu_list(at(*tree, group), fault);
            ASSERT_TRUE(fault.empty() && !its.empty()) << group << ": " << at(*tree, group);
            const auto parent = model::read_cpu_list(at(*tree, std::string(parent_group(group))), fault);
            EXPECT_TRUE(model::has_cpus(parent, its)) << group;
        }
        const auto& wanted = kill % 2 == 0 ? in : other;
        ASSERT_TRUE(reconcile(*tree, plan(wanted).goals).troubles.empty());
        for (const auto& goal : plan(wanted).goals)
            EXPECT_EQ(at(*tree, goal.group), model::cpu_list_text(*goal.cpus)) << goal.group;
    }
}

// The kernel's own tree, where there is one and we may write it: a reason why not, or its root.
std::string real_cpuset(std::string& why) {
    const fs::path root = "/sys/fs/cgroup/cpuset";
    if (!fs::exists(root / "cpuset.cpus")) why = "no cpuset controller of cgroup v1 is mounted";
    if (why.empty() && ::geteuid() != 0) why = "only root may make groups";
    return root;
}

// A subtree of the kernel's that goes with the object, with a process in the LS and one in the BE pod.
class RealTree {
public:
    explicit RealTree(const std::string& name) : name_(name) {
        for (const auto* controller : {"cpuset", "cpu", "cpuacct", "memory"}) {
            for (const auto& group : groups()) {
                const fs::path path = fs::path("/sys/fs/cgroup") / controller / name_ / group;
                std::error_code error;
                if (!fs::create_directories(path, error) && error) return;
            }
        }
        copy_cpuset(fs::path("/sys/fs/cgroup/cpuset") / name_);
        for (const auto& group : groups()) copy_cpuset(fs::path("/sys/fs/cgroup/cpuset") / name_ / group);
        good = true;
    }
    ~RealTree() {
        for (const pid_t pid : processes_) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
        auto all = groups();
        for (const auto* controller : {"cpuset", "cpu", "cpuacct", "memory"}) {
            for (size_t i = all.size(); i-- > 0;)
                ::rmdir((fs::path("/sys/fs/cgroup") / controller / name_ / all[i]).c_str());
            ::rmdir((fs::path("/sys/fs/cgroup") / controller / name_).c_str());
        }
    }
    RealTree(const RealTree&) = delete;
    RealTree& operator=(const RealTree&) = delete;

    // A process that runs without end in a group.
    pid_t busy(const std::string& group) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            for (std::atomic<uint64_t> i = 0;; ++i) {
            }
        }
        processes_.push_back(pid);
        for (const auto* controller : {"cpuset", "cpu", "cpuacct"})
            std::ofstream(fs::path("/sys/fs/cgroup") / controller / name_ / group / "cgroup.procs") << pid << "\n";
        return pid;
    }
    static std::string allowed(pid_t pid) {
        std::ifstream in(fmt::format("/proc/{}/status", pid));
        for (std::string line; std::getline(in, line);) {
            if (line.starts_with("Cpus_allowed_list:")) return line.substr(line.find('\t') + 1);
        }
        return "";
    }
    int64_t throttled() const {
        std::ifstream in("/sys/fs/cgroup/cpu/" + name_ + "/kubepods/besteffort/cpu.stat");
        for (std::string line; std::getline(in, line);) {
            if (line.starts_with("nr_throttled ")) return std::stoll(line.substr(13));
        }
        return -1;
    }

    bool good = false;

private:
    static std::vector<std::string> groups() {
        return {"kubepods",
                "kubepods/besteffort",
                "kubepods/burstable",
                "kubepods/burstable/pod" + kUid,
                "kubepods/burstable/pod" + kUid + "/" + kId,
                "kubepods/besteffort/pod" + kOther,
                "kubepods/besteffort/pod" + kOther + "/" + kId};
    }
    static void copy_cpuset(const fs::path& group) {
        for (const auto* file : {"cpuset.mems", "cpuset.cpus"}) {
            std::string text;
            std::getline(std::ifstream(group.parent_path() / file), text);
            std::ofstream(group / file) << text << "\n";
        }
    }

    const std::string name_;
    std::vector<pid_t> processes_;
};

TEST(RealCgroups, ReservedCoresAreLeftAloneAndBestEffortIsThrottled) {
    std::string why;
    real_cpuset(why);
    if (!why.empty()) GTEST_SKIP() << why;
    const std::string name = fmt::format("berth-test-{}", ::getpid());
    RealTree real(name);
    if (!real.good) GTEST_SKIP() << "no groups can be made below /sys/fs/cgroup";
    const auto tree = open_tree({.below = name});
    ASSERT_TRUE(tree) << tree.error().message;
    const auto machine = read_machine("live");
    ASSERT_TRUE(machine);
    if (machine->cpus.size() < 2) GTEST_SKIP() << "this machine has one CPU: none can be reserved";
    Situation in;
    in.machine = *machine;
    in.pods = {pod_of("ls", kUid, model::KubeQos::Burstable, model::Qos::LS),
               pod_of("be", kOther, model::KubeQos::BestEffort, model::Qos::BE)};
    in.slo.by_quota = true;
    const std::string first = fmt::format("{}", machine->cpus.front().id);
    in.node.meta.annotations.set("node.koordinator.sh/reservation", fmt::format(R"({{"reservedCPUs":"{}"}})", first));
    const pid_t ls = real.busy("kubepods/burstable/pod" + kUid + "/" + kId);
    const pid_t be = real.busy("kubepods/besteffort/pod" + kOther + "/" + kId);
    for (auto& pod : in.pods) add_containers(**tree, pod);
    in.usage.node.cpu = static_cast<int64_t>(machine->cpus.size()) * kMilliPerCore;
    in.usage.pods = {{"ns/ls", {in.usage.node.cpu, 0}}};
    const auto done = reconcile(**tree, plan(in).goals);
    EXPECT_TRUE(done.troubles.empty()) << done.troubles.front();
    const auto left = model::cpus_without(machine->ids(), {machine->cpus.front().id});
    EXPECT_EQ(RealTree::allowed(ls), model::cpu_list_text(left));
    EXPECT_EQ(RealTree::allowed(be), model::cpu_list_text(left));
    EXPECT_EQ(at(**tree, "kubepods/besteffort", File::Quota), "2000");
    const int64_t before = real.throttled();
    for (int i = 0; i < 500 && real.throttled() <= before; ++i) ::usleep(10'000);  // the kernel counts per period
    EXPECT_GT(real.throttled(), before);
    in.node.meta.annotations.erase("node.koordinator.sh/reservation");
    in.slo.enable = false;
    EXPECT_TRUE(reconcile(**tree, plan(in).goals).troubles.empty());
    EXPECT_EQ(RealTree::allowed(ls), model::cpu_list_text(machine->ids()));
    EXPECT_EQ(at(**tree, "kubepods/besteffort", File::Quota), "-1");
}

TEST(Meter, CountsWhatRan) {
    EXPECT_EQ(*busy_nanos("cpu  100 20 30 1000 50 5 5 7 0 0\ncpu0 1\n", 100), 1'600'000'000);
    EXPECT_FALSE(busy_nanos("intr 5", 100));
    EXPECT_EQ(*used_memory("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n"), 600 * 1024);
    EXPECT_FALSE(used_memory("MemTotal: 1000 kB\n"));
    Rehearsal there;
    there.pod("kubepods/burstable/pod" + kUid);
    const auto tree = there.open();
    const std::vector<NodePod> pods{pod_of("ls", kUid, model::KubeQos::Burstable, model::Qos::LS)};
    const auto before = take_sample(*tree, pods, {0});
    ASSERT_TRUE(before);
    there.put("cpuacct", "kubepods/burstable/pod" + kUid, "cpuacct.usage", "3000000000");
    auto after = *take_sample(*tree, pods, {2'000'000'000});
    after.node_nanos = before->node_nanos + 4'000'000'000;
    const auto usage = usage_between(*before, after, pods);
    EXPECT_EQ(usage.node.cpu, 2000);
    EXPECT_EQ(usage.of(pods[0]).cpu, 1500);
    EXPECT_EQ(usage.of(pods[0]).memory, 4000) << "without what could be dropped";
    EXPECT_EQ(usage.system().cpu, 500);
}

TEST(AgentEviction, LowerPriorityThenLargerUse) {
    Situation in = eight();
    in.node.capacity.set(model::kMemory, 1000);
    in.usage.node.memory = 750;
    for (const auto* name : {"a", "b", "c"})
        in.pods.push_back(pod_of(name, kUid, model::KubeQos::BestEffort, model::Qos::BE));
    in.pods.push_back(pod_of("ls", kOther, model::KubeQos::Burstable, model::Qos::LS));
    in.pods[0].priority = 5500;
    in.pods[1].priority = in.pods[2].priority = 5000;
    in.usage.pods = {{"ns/a", {0, 300}}, {"ns/b", {0, 50}}, {"ns/c", {0, 60}}, {"ns/ls", {0, 300}}};
    const auto names = [&] {
        std::string out;
        for (const auto& each : evictions(in, plan(in), std::chrono::hours(1))) out += in.pods[each.pod].name;
        return out;
    };
    EXPECT_EQ(names(), "cb") << "750 - 60 - 50 is below 68 %";
    in.pods[2].ends = true;
    EXPECT_EQ(names(), "") << "c goes already, and 690 is not above 70 %";
    in.pods[2].ends = false;
    in.usage.node.memory = 700;
    EXPECT_EQ(names(), "") << "the threshold itself is none above it";
    in.slo.satisfaction_lower = 50;
    in.slo.satisfaction_upper = 80;
    in.usage.cpuset = model::CpuIds{0, 1};
    for (auto& pod : in.pods) pod.batch_cpu_request = pod.qos == model::Qos::BE ? 2000 : 0;
    in.usage.pods = {{"ns/a", {900, 0}}, {"ns/b", {500, 0}}, {"ns/c", {600, 0}}};
    EXPECT_EQ(names(), "cb") << "2 of 6 cores: below 50 %; of 4 cores 50 %, of 2 all of it";
    EXPECT_TRUE(evictions(in, plan(in), std::chrono::seconds(59)).empty()) << "not before the window is over";
    in.slo.by_allocatable = true;
    in.node.allocatable.set(*model::intern_resource("kubernetes.io/batch-cpu"), 3000);
    EXPECT_EQ(names(), "") << "3 of 6 are not below 50 %";
    in.node.allocatable.set(*model::intern_resource("kubernetes.io/batch-cpu"), 1900);
    EXPECT_EQ(names(), "cb") << "1.9 of 2 are above 80 %";
    in.usage.pods = {{"ns/a", {100, 0}}};
    EXPECT_EQ(names(), "") << "they do not use what they have";
}

}  // namespace
}  // namespace berth::node
