#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>

#include "api/audit.h"
#include "base/log.h"
#include "base/thread.h"

namespace berth::api {
namespace {

constexpr size_t kMostWaiting = 16'384;
constexpr size_t kBlock = 256u << 10;
constexpr auto kGathering = std::chrono::milliseconds(10);  // one write for all lines of so long
constexpr auto kPatience = std::chrono::seconds(2);
constexpr auto kBetweenLogs = std::chrono::seconds(30);

// The file, of which another may take the place: an operator's, or a full disk's.
class LineFile {
public:
    explicit LineFile(const AuditLog::Options& options) : options_(options) {}
    ~LineFile() { close(); }
    LineFile(const LineFile&) = delete;
    LineFile& operator=(const LineFile&) = delete;

    // Nothing, or what went wrong.
    std::string write(std::string_view text) {
        if (moved()) close();
        if (fd_ < 0 && !open()) return trouble("open");
        if (regular_ && size_ > 0 && size_ + text.size() > options_.max_bytes) rotate();
        if (fd_ < 0 && !open()) return trouble("open");
        if (torn_ && !write_all("\n")) return trouble("write");
        torn_ = false;
        if (write_all(text)) return {};
        torn_ = true;
        return trouble("write");
    }

private:
    bool open() {
        fd_ = ::open(options_.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        struct stat info{};
        if (fd_ < 0 || ::fstat(fd_, &info) != 0) return false;
        regular_ = S_ISREG(info.st_mode);
        if (regular_ && (info.st_mode & 077) != 0) ::fchmod(fd_, 0600);
        size_ = static_cast<uint64_t>(info.st_size);
        inode_ = info.st_ino;
        return true;
    }

    void close() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

    bool moved() const {
        struct stat info{};
        return fd_ >= 0 && (::stat(options_.path.c_str(), &info) != 0 || info.st_ino != inode_);
    }

    std::string numbered(int n) const { return fmt::format("{}.{}", options_.path, n); }

    void rotate() {
        close();
        for (int n = std::max(options_.backups, 1); ::unlink(numbered(n).c_str()) == 0; ++n) {
        }
        for (int n = options_.backups - 1; n > 0; --n) ::rename(numbered(n).c_str(), numbered(n + 1).c_str());
        if (options_.backups > 0)
            ::rename(options_.path.c_str(), numbered(1).c_str());
        else
            ::unlink(options_.path.c_str());
    }

    bool write_all(std::string_view text) {
        while (!text.empty()) {
            const ssize_t n = ::write(fd_, text.data(), text.size());
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return false;
            text.remove_prefix(static_cast<size_t>(n));
            size_ += static_cast<uint64_t>(n);
        }
        return true;
    }

    std::string trouble(std::string_view doing) const {
        return fmt::format("cannot {} {}: {}", doing, options_.path, std::strerror(errno));
    }

    const AuditLog::Options options_;
    int fd_ = -1;
    bool regular_ = true;
    bool torn_ = false;  // the last line has no end
    uint64_t size_ = 0;
    ino_t inode_ = 0;
};

}  // namespace

struct AuditLog::State {
    explicit State(Options the_options) : clock(*the_options.clock), file(the_options) {}

    void run();
    void write(const std::vector<AuditEvent>& events);
    void lose(size_t count, const std::string& why);

    const base::Clock& clock;
    LineFile file;  // the thread's
    std::mutex mutex;
    bool logged = false;
    base::Instant last_log{};
    std::condition_variable changed;
    std::vector<AuditEvent> waiting;
    bool stopping = false;
    bool ended = false;
    std::atomic<bool> given_up{false};  // the process may be ending: nothing is written or logged any more
    std::atomic<uint64_t> told{0};
    std::atomic<uint64_t> lost{0};
};

void AuditLog::State::lose(size_t count, const std::string& why) {
    lost += count;
    {
        const std::lock_guard lock(mutex);
        if (given_up) return;
        const auto now = clock.now();
        if (logged && now - last_log < kBetweenLogs) return;
        logged = true;
        last_log = now;
    }
    base::log_error("Audit lines are lost", {{"lost", lost.load()}, {"error", why}});
}

void AuditLog::State::write(const std::vector<AuditEvent>& events) {
    std::string block;
    size_t lines = 0;
    const auto flush = [&] {
        if (const auto wrong = file.write(block); !wrong.empty()) lose(lines, wrong);
        block.clear();
        lines = 0;
    };
    for (const auto& event : events) {
        if (given_up) return;
        block += audit_line(event);
        ++lines;
        if (block.size() >= kBlock) flush();
    }
    if (lines > 0 && !given_up) flush();
}

void AuditLog::State::run() {
    // A pipe whose reader went is trouble like any other, not the end of the process.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::unique_lock lock(mutex);
    while (true) {
        changed.wait(lock, [&] { return stopping || !waiting.empty(); });
        changed.wait_for(lock, kGathering, [&] { return stopping; });
        if (waiting.empty() || given_up) break;
        std::vector<AuditEvent> events;
        events.swap(waiting);
        lock.unlock();
        write(events);
        lock.lock();
    }
    ended = true;
    changed.notify_all();
}

AuditLog::AuditLog(Options options)
    : state_(std::make_shared<State>(std::move(options))),
      thread_(base::named_thread("audit", [state = state_] { state->run(); })) {}

AuditLog::~AuditLog() {
    std::unique_lock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
    const bool ended = state_->changed.wait_for(lock, kPatience, [&] { return state_->ended; });
    const size_t waiting = state_->waiting.size();
    state_->given_up = !ended;
    lock.unlock();
    if (ended) {
        thread_.join();
        return;
    }
    base::log_error("The audit log does not take what waits for it", {{"lost", waiting}});
    thread_.detach();
}

void AuditLog::tell(AuditEvent event) {
    state_->told += 1;
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->waiting.size() < kMostWaiting) {
            state_->waiting.push_back(std::move(event));
            if (state_->waiting.size() == 1) state_->changed.notify_one();
            return;
        }
    }
    state_->lose(1, "too many lines wait to be written");
}

uint64_t AuditLog::told() const {
    return state_->told;
}

uint64_t AuditLog::lost() const {
    return state_->lost;
}

}  // namespace berth::api
