#include "node/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

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

}  // namespace
}  // namespace berth::node
