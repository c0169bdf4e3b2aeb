#include "node/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace berth::node {
namespace {

constexpr int kCannot = 77;

// What a process of its own answers; a confinement is for good.
template <class Say>
int in_a_child(Say say) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(say());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Confine, NoFileIsWritten) {
    const auto path = std::filesystem::temp_directory_path() / "berth-confine";
    const int said = in_a_child([&] {
        if (!give_up_writing_files()) return kCannot;
        const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        const int written = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
        const int read = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC);
        return made < 0 && written < 0 && read >= 0 ? 0 : 1;
    });
    if (said == kCannot) GTEST_SKIP() << "this kernel has no Landlock";
    EXPECT_EQ(said, 0);
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Confine, NoSocketAndNoProcess) {
    const int said = in_a_child([] {
        if (!allow_orders_only()) return kCannot;
        const bool talks = ::socket(AF_INET, SOCK_STREAM, 0) >= 0;
        const bool refused = errno == EPERM;
        const bool starts = ::fork() >= 0;
        return !talks && refused && !starts ? 0 : 1;
    });
    if (said == kCannot) GTEST_SKIP() << "no seccomp here, or a sanitizer that does more";
    EXPECT_EQ(said, 0);
}

// What /proc says of each thread.
bool all_threads(const std::string& line) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream in(task.path() / "status");
        const std::string text{std::istreambuf_iterator<char>(in), {}};
        if (text.find(line) == std::string::npos) return false;
    }
    return true;
}

TEST(Confine, RootBecomesSomebodyElse) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
    const int said = in_a_child([] {
        std::atomic<bool> ends = false;
        std::thread other([&] {
            while (!ends) std::this_thread::yield();
        });
        const bool done = static_cast<bool>(become_user(65532));
        const bool all = all_threads("\nUid:\t65532\t65532\t65532\t65532\n") &&
                         all_threads("\nGid:\t65532\t65532\t65532\t65532\n") &&
                         all_threads("\nCapPrm:\t0000000000000000\n") && all_threads("\nCapEff:\t0000000000000000\n") &&
                         all_threads("\nGroups:\t \n");
        ends = true;
        other.join();
        return done && all && ::setuid(0) != 0 ? 0 : 1;
    });
    EXPECT_EQ(said, 0);
}

TEST(Confine, NoCapabilityIsLeft) {
    const int said = in_a_child([] {
        give_up_capabilities();
        return all_threads("\nCapEff:\t0000000000000000\n") && all_threads("\nCapAmb:\t0000000000000000\n") &&
                       all_threads("\nNoNewPrivs:\t1\n")
                   ? 0
                   : 1;
    });
    EXPECT_EQ(said, 0);
}

}  // namespace
}  // namespace berth::node
