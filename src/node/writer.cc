#include "node/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "node/confine.h"
#include "node/descriptor.h"

namespace berth::node {
namespace {

constexpr uint8_t kOpens = 255;  // instead of a File: which of the files, as group_size

// Both ends are one program, so numbers stand as the machine has them.
struct Order {
    uint8_t file = 0;
    uint16_t group_size = 0;
    uint16_t value_size = 0;
    std::array<char, 488> group{};
    std::array<char, 3600> value{};
};
struct Answer {
    int32_t code = 0;  // 0: done; else of Reason, plus one
    uint32_t size = 0;
    std::array<char, 1016> sentence{};
};

Answer refusal(const Error& error) {
    Answer answer;
    answer.code = static_cast<int32_t>(error.reason) + 1;
    answer.size = static_cast<uint32_t>(std::min(error.message.size(), answer.sentence.size()));
    std::copy_n(error.message.begin(), answer.size, answer.sentence.begin());
    return answer;
}

// nullopt: it was done.
std::optional<Error> error_in(const Answer& answer) {
    if (answer.code == 0) return std::nullopt;
    const auto size = std::min<size_t>(answer.size, answer.sentence.size());
    return Error{static_cast<Reason>(answer.code - 1), std::string(answer.sentence.data(), size)};
}

// A descriptor beside the bytes of a message.
struct Passed {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec bytes{};
    msghdr head{};

    explicit Passed(Answer& answer) : bytes{&answer, sizeof(answer)} {
        head.msg_iov = &bytes;
        head.msg_iovlen = 1;
        head.msg_control = control.data();
        head.msg_controllen = control.size();
    }
    Passed(const Passed&) = delete;
    Passed& operator=(const Passed&) = delete;
};

bool send_file(int socket, int fd) {
    Answer done;
    Passed passed(done);
    cmsghdr* note = CMSG_FIRSTHDR(&passed.head);
    note->cmsg_level = SOL_SOCKET;
    note->cmsg_type = SCM_RIGHTS;
    note->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(note), &fd, sizeof(int));
    return ::sendmsg(socket, &passed.head, MSG_NOSIGNAL) == sizeof(Answer);
}

bool open_for(int socket, const Order& order, const std::vector<std::string>& files) {
    auto opened = order.group_size < files.size() ? open_plain_file(files[order.group_size])
                                                  : Result<Descriptor>(base::bad_request("a file that is none"));
    if (opened) return send_file(socket, opened->get());
    const Answer answer = refusal(opened.error());
    return ::send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) == sizeof(answer);
}

Answer answer_to(const Order& order, Tree& tree) {
    Answer answer;
    const auto refuse = [&](const Error& error) { answer = refusal(error); };
    if (order.file >= kFiles || order.group_size > order.group.size() || order.value_size > order.value.size()) {
        refuse(base::bad_request("an order that is none"));
        return answer;
    }
    const std::string value(order.value.data(), order.value_size);
    const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
        return (c >= '0' && c <= '9') || c == ',' || c == '-' || c == ' ' || (c >= 'a' && c <= 'z');
    });
    if (!plain || value.empty()) {
        refuse(base::bad_request("a value that is none"));
        return answer;
    }
    const Status done = tree.write({order.group.data(), order.group_size}, static_cast<File>(order.file), value);
    if (!done) refuse(done.error());
    return answer;
}

// What the writing process keeps: files of root may be written by a root of no other rights.
void drop_rights() {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_NPROC, &none);
    ::setrlimit(RLIMIT_CORE, &none);
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> rights{};
    rights[0].effective = rights[0].permitted = 1U << CAP_DAC_OVERRIDE;
    ::syscall(SYS_capset, &head, rights.data());  // refused where there is nothing to drop
}

[[noreturn]] void become_writer(int socket, Tree& tree, const std::vector<std::string>& files) {
    ::prctl(PR_SET_NAME, "berth-writer", 0, 0, 0);
    // Whoever stops the agent lets it give back what it took first: this process ends when the socket does.
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    drop_rights();
    allow_orders_only();
    serve_orders(socket, tree, files);
    ::_exit(0);
}

class Split final : public SplitTree {
public:
    Split(std::unique_ptr<Tree> tree, Descriptor socket, pid_t writer)
        : tree_(std::move(tree)), socket_(std::move(socket)), writer_(writer) {}
    ~Split() override {
        socket_ = Descriptor();
        ::waitpid(writer_, nullptr, 0);
    }
    Split(const Split&) = delete;
    Split& operator=(const Split&) = delete;

    const Hierarchy& hierarchy() const override { return tree_->hierarchy(); }
    Result<std::string> read(const std::string& group, File file) override { return tree_->read(group, file); }
    Result<std::vector<std::string>> children(const std::string& group) override { return tree_->children(group); }

    Status write(const std::string& group, File file, const std::string& value) override {
        Order order;
        if (group.size() > order.group.size() || value.size() > order.value.size())
            return base::bad_request(fmt::format("cgroup {}: a value of {} bytes is too long", group, value.size()));
        order.file = static_cast<uint8_t>(file);
        order.group_size = static_cast<uint16_t>(group.size());
        order.value_size = static_cast<uint16_t>(value.size());
        std::copy(group.begin(), group.end(), order.group.begin());
        std::copy(value.begin(), value.end(), order.value.begin());
        Answer answer;
        if (::send(socket_.get(), &order, sizeof(order), MSG_NOSIGNAL) != sizeof(order) ||
            ::recv(socket_.get(), &answer, sizeof(answer), 0) != sizeof(answer))
            return base::internal("the process that writes cgroups has gone");
        if (auto error = error_in(answer)) return std::move(*error);
        return {};
    }

    Result<Descriptor> open_file(size_t which) override {
        Order order;
        order.file = kOpens;
        order.group_size = static_cast<uint16_t>(std::min<size_t>(which, UINT16_MAX));
        Answer answer;
        Passed passed(answer);
        if (::send(socket_.get(), &order, sizeof(order), MSG_NOSIGNAL) != sizeof(order) ||
            ::recvmsg(socket_.get(), &passed.head, MSG_CMSG_CLOEXEC) != sizeof(answer))
            return base::internal("the process that writes cgroups has gone");
        if (auto error = error_in(answer)) return std::move(*error);
        const cmsghdr* note = CMSG_FIRSTHDR(&passed.head);
        if (note == nullptr || note->cmsg_type != SCM_RIGHTS) return base::internal("it passed no file");
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(note), sizeof(int));
        return Descriptor(fd);
    }

private:
    std::unique_ptr<Tree> tree_;
    Descriptor socket_;
    pid_t writer_;
};

}  // namespace

Result<Descriptor> open_plain_file(const std::string& path) {
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    how.resolve = RESOLVE_NO_MAGICLINKS;
    Descriptor fd(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how))));
    const auto no = [&](std::string_view why) {
        return Error{errno == ENOENT ? Reason::NotFound : Reason::BadRequest,
                     fmt::format("cannot read {}: {}", path, why)};
    };
    if (fd.get() < 0) return no(std::strerror(errno));
    struct stat kind{};
    if (::fstat(fd.get(), &kind) != 0) return no(std::strerror(errno));
    if (!S_ISREG(kind.st_mode)) return no("it is no file");
    return fd;
}

void serve_orders(int socket, Tree& tree, const std::vector<std::string>& files) {
    Order order;
    while (true) {
        const auto got = ::recv(socket, &order, sizeof(order), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got != sizeof(order)) return;
        if (order.file == kOpens) {
            if (!open_for(socket, order, files)) return;
            continue;
        }
        const Answer answer = answer_to(order, tree);
        if (::send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer)) return;
    }
}

Result<std::unique_ptr<SplitTree>> split_tree(std::unique_ptr<Tree> tree, std::vector<std::string> files) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return base::internal(fmt::format("no socket for the process that writes cgroups: {}", std::strerror(errno)));
    Descriptor ours(ends[0]), its(ends[1]);
    const pid_t writer = ::fork();
    if (writer < 0) return base::internal(fmt::format("no process that writes cgroups: {}", std::strerror(errno)));
    if (writer == 0) {
        ours = Descriptor();
        become_writer(its.get(), *tree, files);
    }
    return std::unique_ptr<SplitTree>(std::make_unique<Split>(std::move(tree), std::move(ours), writer));
}

}  // namespace berth::node
