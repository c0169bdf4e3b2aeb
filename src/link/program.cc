#include "link/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "model/times.h"

extern char** environ;

namespace berth::link {
namespace {

constexpr size_t kMostErrors = 4u << 10;

class OwnFile {
public:
    OwnFile() = default;
    explicit OwnFile(int fd) : fd_(fd) {}
    ~OwnFile() { close(); }
    OwnFile(const OwnFile&) = delete;
    OwnFile& operator=(const OwnFile&) = delete;
    int get() const { return fd_; }
    bool open() const { return fd_ >= 0; }
    void become(int fd) {
        close();
        fd_ = fd;
    }
    void close() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

private:
    int fd_ = -1;
};

// What the child writes: our end does not block.
struct ChildPipe {
    OwnFile ours, childs;
    bool make() {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
        ours.become(ends[0]);
        childs.become(ends[1]);
        return ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
    }
};

std::vector<std::string> child_environment(const Program& program) {
    std::vector<std::string> out;
    for (const auto& [name, value] : program.env) out.push_back(fmt::format("{}={}", name, value));
    for (char** each = environ; *each != nullptr; ++each) {
        const std::string_view entry(*each);
        const auto name = entry.substr(0, entry.find('='));
        const auto same = [&](const auto& pair) { return pair.first == name; };
        if (std::none_of(program.env.begin(), program.env.end(), same)) out.emplace_back(entry);
    }
    return out;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> out;
    out.reserve(words.size() + 1);
    for (auto& word : words) out.push_back(word.data());
    out.push_back(nullptr);
    return out;
}

// The child: alone in its process group, unless a person answers it, with the signals of a fresh process.
class Child {
public:
    explicit Child(const Program& program) : program_(program) {}
    ~Child() {
        if (pid_ > 0) kill_and_reap();
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    Status start() {
        if (!output_.make() || !errors_.make()) return failed("cannot be run", errno);
        std::vector<std::string> words{program_.command}, env = child_environment(program_);
        words.insert(words.end(), program_.args.begin(), program_.args.end());
        const int error = spawn(pointers(words).data(), pointers(env).data());
        output_.childs.close();
        errors_.childs.close();
        if (error == ENOENT) return base::not_found(failed("cannot be run", error).message);
        if (error != 0) return failed("cannot be run", error);
        // Not pidfd_open(): its header in Debian 12 is not for C++.
        process_.become(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
        if (!process_.open()) return failed("cannot be waited for", errno);
        return {};
    }

    Result<ProgramEnd> wait(int stop, const base::Clock& clock) {
        const auto due = clock.now() + program_.most;
        while (true) {
            std::array<pollfd, 4> files{pollfd{output_.ours.get(), POLLIN, 0}, pollfd{errors_.ours.get(), POLLIN, 0},
                                        pollfd{process_.get(), POLLIN, 0}, pollfd{stop, POLLIN, 0}};
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - clock.now());
            if (left.count() <= 0) {
                return says(fmt::format("did not end within {}", model::duration_text(program_.most)));
            }
            if (::poll(files.data(), files.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
                return failed("cannot be waited for", errno);
            }
            take(output_.ours, end_.output, program_.most_output + 1);
            take(errors_.ours, end_.errors, kMostErrors);
            if (end_.output.size() > program_.most_output) {
                return says(fmt::format("printed more than {} bytes", program_.most_output));
            }
            if (files[3].revents != 0) return says("was ended: we end too");
            // Whoever it left behind may hold the pipes for ever; what it wrote itself has been taken.
            if (files[2].revents != 0) return reaped();
        }
    }

private:
    int spawn(char** words, char** env) {
        posix_spawn_file_actions_t files;
        ::posix_spawn_file_actions_init(&files);
        if (!program_.at_terminal) {
            ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
            ::posix_spawn_file_actions_adddup2(&files, errors_.childs.get(), STDERR_FILENO);
        }
        ::posix_spawn_file_actions_adddup2(&files, output_.childs.get(), STDOUT_FILENO);
        ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
        posix_spawnattr_t how;
        ::posix_spawnattr_init(&how);
        sigset_t none, ours;
        ::sigemptyset(&none);
        ::sigemptyset(&ours);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::sigaddset(&ours, number);
        ::posix_spawnattr_setsigmask(&how, &none);
        ::posix_spawnattr_setsigdefault(&how, &ours);
        int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
        if (!program_.at_terminal) flags |= POSIX_SPAWN_SETPGROUP;
        ::posix_spawnattr_setflags(&how, static_cast<short>(flags));
        const int error = ::posix_spawnp(&pid_, program_.command.c_str(), &files, &how, words, env);
        if (error != 0) pid_ = 0;
        ::posix_spawnattr_destroy(&how);
        ::posix_spawn_file_actions_destroy(&files);
        return error;
    }

    // What is there, as much as a pipe may hold; beyond `most` it is forgotten, so that nobody waits for us.
    static void take(OwnFile& from, std::string& to, size_t most) {
        std::array<char, 16384> block;
        for (int blocks = 0; from.open() && blocks < 64; ++blocks) {
            const auto n = ::read(from.get(), block.data(), block.size());
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
            if (n <= 0) return from.close();
            to.append(block.data(), std::min(static_cast<size_t>(n), most - std::min(most, to.size())));
        }
    }

    ProgramEnd reaped() {
        int status = 0;
        ::waitpid(pid_, &status, 0);
        pid_ = 0;
        end_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return std::move(end_);
    }
    void kill_and_reap() {
        ::kill(program_.at_terminal ? pid_ : -pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Error says(std::string_view what) const {
        return base::bad_request(fmt::format("\"{}\" {}", program_.command, what));
    }
    Error failed(std::string_view what, int error) const {
        return says(fmt::format("{}: {}", what, std::strerror(error)));
    }

    const Program& program_;
    ChildPipe output_, errors_;
    pid_t pid_ = 0;
    OwnFile process_;
    ProgramEnd end_;
};

}  // namespace

Result<ProgramEnd> run_program(const Program& program, int stop, const base::Clock& clock) {
    Child child(program);
    TRY(child.start());
    return child.wait(stop, clock);
}

}  // namespace berth::link
