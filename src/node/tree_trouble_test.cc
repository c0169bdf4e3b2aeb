// What a kernel or a file system answers when a write cannot be done: a sentence each, and nothing else is touched.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "node/confine.h"
#include "node/plan.h"
#include "node/reconcile.h"

namespace berth::node {
namespace {

namespace fs = std::filesystem;

class SmallTree {
public:
    SmallTree() {
        std::string name = fs::temp_directory_path() / "berth-trouble-XXXXXX";
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        root = name;
        fs::permissions(root, fs::perms(0755));
        std::ofstream(root / "cgroup.controllers") << "cpuset cpu\n";
        for (const auto* group : {"kubepods", "kubepods/besteffort", "kubepods/burstable"}) {
            fs::create_directory(root / group);
            std::ofstream(root / group / "cpuset.cpus") << "0-3\n";
            std::ofstream(root / group / "cpu.max") << "max 100000\n";
        }
    }
    ~SmallTree() { fs::remove_all(root); }
    SmallTree(const SmallTree&) = delete;
    SmallTree& operator=(const SmallTree&) = delete;

    std::string line(const std::string& file) const {
        std::string out;
        std::ifstream in(root / file);
        std::getline(in, out);
        return out;
    }
    // What a process of its own says of a tree after it has prepared itself.
    template <class Prepare, class Ask>
    std::string said(Prepare prepare, Ask ask) const {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            const auto tree = open_tree({.root = root, .any_files = true});
            prepare();
            const std::string text = tree ? ask(**tree) : tree.error().message;
            ::_exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
        }
        ::close(ends[1]);
        std::string out(1000, '\0');
        const auto got = ::read(ends[0], out.data(), out.size());
        out.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
        ::close(ends[0]);
        ::waitpid(child, nullptr, 0);
        return out;
    }

    fs::path root;
};

std::string write_error(Tree& tree, const std::string& group, const std::string& value) {
    const auto done = tree.write(group, File::Cpuset, value);
    return done ? "" : done.error().message;
}

// As a file system that is full, but in one process.
void write_nothing_more() {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    ::signal(SIGXFSZ, SIG_IGN);
}

TEST(CgroupTrouble, NothingMoreCanBeWritten) {
    const SmallTree there;
    const auto said = there.said(write_nothing_more, [](Tree& tree) {
        Situation in;
        in.tree = tree.hierarchy();
        for (int32_t id = 0; id < 4; ++id) in.machine.cpus.push_back({id, id, 0, 0});
        in.machine.numas = {{0, 0, {}}};
        in.node.meta.annotations.set("node.koordinator.sh/reservation", R"({"reservedCPUs":"0"})");
        std::string out;
        for (const auto& trouble : reconcile(tree, plan(in).goals).troubles) out += trouble + "; ";
        return out;
    });
    EXPECT_NE(said.find("kubepods/besteffort/cpuset.cpus: cannot write \"1-2\": File too large"), std::string::npos)
        << said;
    EXPECT_EQ(there.line("kubepods/besteffort/cpuset.cpus"), "0-3") << "what was there is whole";
}

TEST(CgroupTrouble, SomebodyElsesFile) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
    const SmallTree there;
    fs::permissions(there.root / "kubepods/burstable/cpuset.cpus", fs::perms(0600));
    const auto nobody = [] { (void)become_user(65532); };
    EXPECT_EQ(there.said(nobody, [](Tree& tree) { return write_error(tree, "kubepods/besteffort", "0"); }),
              "cgroup " + there.root.string() + "/kubepods/besteffort/cpuset.cpus: cannot open it: Permission denied");
    EXPECT_EQ(there.said(nobody,
                         [](Tree& tree) {
                             const auto read = tree.read("kubepods/burstable", File::Cpuset);
                             return read ? *read : read.error().message;
                         }),
              "cgroup " + there.root.string() + "/kubepods/burstable/cpuset.cpus: cannot open it: Permission denied");
    EXPECT_EQ(there.line("kubepods/besteffort/cpuset.cpus"), "0-3");
}

// The kernel refuses CPUs that the machine does not have, and a group that has more than its parent.
TEST(CgroupTrouble, TheKernelSaysNo) {
    const fs::path cpuset = "/sys/fs/cgroup/cpuset";
    if (::geteuid() != 0 || !fs::exists(cpuset / "cpuset.cpus")) GTEST_SKIP() << "no cgroup v1 that we may write";
    const std::string name = "berth-trouble-" + std::to_string(::getpid());
    std::vector<fs::path> made;
    std::error_code error;
    for (const auto* controller : {"cpuset", "cpu", "cpuacct", "memory"}) {
        for (const auto* group : {"", "/kubepods"}) {
            const fs::path place = "/sys/fs/cgroup/" + std::string(controller) + "/" + name + group;
            if (fs::create_directory(place, error)) made.push_back(place);
        }
    }
    for (const auto* file : {"cpuset.mems", "cpuset.cpus"}) {
        std::string text;
        std::getline(std::ifstream(cpuset / file), text);
        for (const auto* group : {"", "/kubepods"})
            std::ofstream(cpuset.string() + "/" + name + group + "/" + file) << text;
    }
    if (const auto tree = open_tree({.below = name}); tree) {
        const auto before = *(*tree)->read("kubepods", File::Cpuset);
        const auto said = write_error(**tree, "kubepods", "8000-8001");
        EXPECT_TRUE(said.starts_with("cgroup /sys/fs/cgroup/cpuset/" + name +
                                     "/kubepods/cpuset.cpus: cannot write \"8000-8001\": "))
            << said;
        EXPECT_EQ(*(*tree)->read("kubepods", File::Cpuset), before);
    } else {
        ADD_FAILURE() << tree.error().message;
    }
    for (auto place = made.rbegin(); place != made.rend(); ++place) ::rmdir(place->c_str());
}

}  // namespace
}  // namespace berth::node
