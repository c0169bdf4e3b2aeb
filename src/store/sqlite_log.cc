#include "store/sqlite_log.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "store/log_file.h"

namespace berth::store {
namespace {

// A batch is bounded so that the first of it does not wait long for the last.
constexpr size_t kBatchEntries = 1024;
constexpr size_t kBatchBytes = 4 << 20;
constexpr size_t kForgetRows = 256;
// Under load a commit waits for as many as came together last time, so that they share its cost; but not for long, and
// not for few.
constexpr size_t kWorthWaiting = 8;
constexpr auto kLongestGathering = std::chrono::milliseconds(2);

class SqliteLog : public Log {
public:
    SqliteLog(std::unique_ptr<DirLock> lock, std::unique_ptr<LogFile> file, KeepLimits keep)
        : lock_(std::move(lock)), file_(std::move(file)), garbage_(keep) {}
    ~SqliteLog() override { close(); }

    Extent extent() const override { return file_->extent(); }
    Status replay(const Replay&) override;
    void start(Sink& sink) override;
    void append(EntryPtr) override;
    void kick() override;
    void close() override;

private:
    using Batch = std::vector<EntryPtr>;

    // Everything below runs on the log's thread.
    void run();
    bool wait(Batch&);
    Status write(const Batch&);
    Status compact();
    Status tidy(bool idle);

    std::unique_ptr<DirLock> lock_;  // outlives the file
    std::unique_ptr<LogFile> file_;
    Garbage garbage_;
    Sink* sink_ = nullptr;

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<EntryPtr> queue_;
    size_t wanted_ = 1;  // so many in the queue are worth waking for
    bool closing_ = false;
    std::thread thread_;
};

size_t bytes_of(const Entry& entry) {
    size_t bytes = 0;
    for (const EventPtr& event : entry.events) bytes += event->record->bytes->size();
    return bytes;
}

Status SqliteLog::replay(const Replay& visit) {
    return file_->replay([&](Change change) {
        const RecordPtr record = change.record;
        const bool deleted = change.deleted;
        RecordPtr previous = visit(std::move(change));
        garbage_.add(*record, deleted, previous.get());
        return previous;
    });
}

void SqliteLog::start(Sink& sink) {
    sink_ = &sink;
    thread_ = base::named_thread("log", [this] { run(); });
}

void SqliteLog::append(EntryPtr entry) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(entry));
}

void SqliteLog::kick() {
    {
        std::lock_guard lock(mutex_);
        if (queue_.size() < wanted_) return;
    }
    wake_.notify_one();
}

void SqliteLog::close() {
    if (!thread_.joinable()) return;
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

void SqliteLog::run() {
    Batch batch;
    while (wait(batch)) {
        Status done = batch.empty() ? Status() : write(batch);
        if (done && !batch.empty()) sink_->durable(batch.back()->revision);
        if (done) done = tidy(batch.empty());
        if (!done) {
            file_->abandon();
            sink_->failed(done.error());
            return;
        }
    }
}

// False: closing, and nothing is left. An empty batch: a quiet moment in which there is something to tidy.
bool SqliteLog::wait(Batch& batch) {
    const size_t last = std::exchange(batch, {}).size();
    std::unique_lock lock(mutex_);
    if (last >= kWorthWaiting) {
        wanted_ = std::min(last, kBatchEntries);
        wake_.wait_for(lock, kLongestGathering, [&] { return closing_ || queue_.size() >= wanted_; });
        wanted_ = 1;
    }
    wake_.wait(lock, [&] { return closing_ || !queue_.empty() || garbage_.too_much(); });
    size_t bytes = 0;
    while (!queue_.empty() && batch.size() < kBatchEntries && bytes < kBatchBytes) {
        bytes += bytes_of(*queue_.front());
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
    }
    return !batch.empty() || !closing_;
}

Status SqliteLog::write(const Batch& batch) {
    TRY(file_->write(batch));
    for (const EntryPtr& entry : batch) {
        for (const EventPtr& event : entry->events) {
            garbage_.add(*event->record, event->type == Event::Type::Deleted, event->previous.get());
        }
    }
    return {};
}

Status SqliteLog::tidy(bool idle) {
    if (idle || garbage_.far_too_much()) TRY(compact());
    return file_->checkpoint();
}

Status SqliteLog::compact() {
    const Garbage::Chunk chunk = garbage_.take(kForgetRows);
    if (chunk.ids.empty()) return {};
    return file_->forget(chunk.ids, chunk.floor);
}

}  // namespace

Result<std::unique_ptr<Log>> sqlite_log(SqliteOptions options) {
    const DataDir dir{options.data_dir};
    auto lock = TRY(DirLock::take(dir));
    auto file = TRY(LogFile::open(dir, options.tuning));
    return std::unique_ptr<Log>(std::make_unique<SqliteLog>(std::move(lock), std::move(file), options.keep));
}

}  // namespace berth::store
