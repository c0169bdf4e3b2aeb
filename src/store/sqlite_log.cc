#include "store/sqlite_log.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
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
// While a batch is on its way to the disk, the next is written into the file in pieces of this many entries.
constexpr size_t kPiece = 64;
// Under load a commit waits for as many as came together last time, so that they share its cost; but not for long, and
// not for few, which are also made safe without the other thread.
constexpr size_t kWorthWaiting = 8;
constexpr auto kLongestGathering = std::chrono::milliseconds(2);
// What is noted about acknowledgements outlives the process at once, and a power cut when it was synced: an fsync for
// each would double what a write waits for. So it is done after so quiet a time, or at last under load.
constexpr auto kQuiet = std::chrono::milliseconds(50);
constexpr auto kLongestUnsynced = std::chrono::milliseconds(500);

// Does one thing at a time on a thread of its own: LogFile::sync().
class Syncer {
public:
    Syncer(LogFile& file, std::function<void(Status)> done)
        : file_(file), done_(std::move(done)), thread_(base::named_thread("sync", [this] { run(); })) {}
    ~Syncer() {
        set(Wish::End);
        thread_.join();
    }
    void start() { set(Wish::Sync); }

private:
    enum class Wish : uint8_t { None, Sync, End };

    void set(Wish wish) {
        {
            std::lock_guard lock(mutex_);
            wish_ = wish;
        }
        wake_.notify_one();
    }
    void run() {
        while (next() == Wish::Sync) done_(file_.sync());
    }
    Wish next() {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return wish_ != Wish::None; });
        return std::exchange(wish_, Wish::None);
    }

    LogFile& file_;
    std::function<void(Status)> done_;
    std::mutex mutex_;
    std::condition_variable wake_;
    Wish wish_ = Wish::None;
    std::thread thread_;
};

class SqliteLog : public Log {
public:
    SqliteLog(std::unique_ptr<DirLock> lock, std::unique_ptr<LogFile> file, KeepLimits keep, const base::Clock& clock)
        : clock_(clock), lock_(std::move(lock)), file_(std::move(file)), garbage_(keep) {}
    ~SqliteLog() override { close(); }

    Extent extent() const override { return file_->extent(); }
    Status replay(const Replay&) override;
    void start(Sink& sink) override;
    void append(EntryPtr) override;
    void kick() override;
    void close() override;

private:
    // Entries that share a transaction: first written into the open one, then committed, then safe.
    struct Batch {
        size_t entries = 0;
        size_t bytes = 0;
        Revision last = 0;
        bool full() const { return entries >= kBatchEntries || bytes >= kBatchBytes; }
    };
    enum class Next : uint8_t { Work, Idle, End };

    // Everything below runs on the log's thread.
    void run();
    Status work();
    Next wait();
    bool commit_is_due(base::Instant now) const;
    Status turn(Next);
    std::vector<EntryPtr> take();
    Status add(const std::vector<EntryPtr>&);
    Status land(Batch& landed);
    Status commit(Batch& landed);
    Status acknowledge(const Batch& landed);
    Status sync_acknowledged();
    Status tidy(bool idle);
    Status compact();

    const base::Clock& clock_;
    std::unique_ptr<DirLock> lock_;  // outlives the file
    std::unique_ptr<LogFile> file_;
    Garbage garbage_;
    Sink* sink_ = nullptr;
    std::unique_ptr<Syncer> syncer_;
    Batch open_;            // in the transaction
    Batch flying_;          // committed, and not yet safe
    size_t last_size_ = 0;  // of the batch before
    base::Instant acknowledged_at_;
    base::Instant committed_at_;                   // the batch before
    std::optional<base::Instant> unsynced_since_;  // the note of what was acknowledged

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<EntryPtr> queue_;
    size_t wanted_ = 1;             // so many in the queue are worth waking for
    std::optional<Status> synced_;  // what came of `flying_`
    bool closing_ = false;
    std::thread thread_;
};

size_t bytes_of(const LogEntry& entry) {
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
    if (file_->read_only()) return sink.failed(*file_->read_only());
    file_->checkpoint_on_close(true);
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
    syncer_ = std::make_unique<Syncer>(*file_, [this](Status status) {
        {
            std::lock_guard lock(mutex_);
            synced_ = std::move(status);
        }
        wake_.notify_one();
    });
    const Status done = work();
    syncer_.reset();
    if (done) return;
    file_->checkpoint_on_close(false);
    sink_->failed(done.error());
}

Status SqliteLog::work() {
    for (Next next = wait(); next != Next::End; next = wait()) TRY(turn(next));
    return unsynced_since_ ? sync_acknowledged() : Status();
}

// What is in the transaction waits for those before it, and under load a little for company.
bool SqliteLog::commit_is_due(base::Instant now) const {
    if (open_.entries == 0 || flying_.entries > 0) return false;
    return last_size_ < kWorthWaiting || open_.entries >= last_size_ || now >= committed_at_ + kLongestGathering;
}

// Until there is something to do; Idle: a quiet moment in which there is something to tidy.
SqliteLog::Next SqliteLog::wait() {
    std::unique_lock lock(mutex_);
    if (flying_.entries > 0) {
        wanted_ = kPiece;
        wake_.wait(lock, [&] { return synced_ || (queue_.size() >= wanted_ && !open_.full()); });
        return Next::Work;
    }
    if (open_.entries > 0) {
        wanted_ = last_size_ - open_.entries;
        wake_.wait_for(lock, committed_at_ + kLongestGathering - clock_.now(),
                       [&] { return queue_.size() >= wanted_ || closing_; });
        return Next::Work;
    }
    wanted_ = 1;
    const auto something = [&] { return !queue_.empty() || closing_ || garbage_.too_much(); };
    if (unsynced_since_) {
        wake_.wait_for(lock, acknowledged_at_ + kQuiet - clock_.now(), something);
    } else {
        wake_.wait(lock, something);
    }
    if (!queue_.empty()) return Next::Work;
    return closing_ ? Next::End : Next::Idle;
}

Status SqliteLog::turn(Next next) {
    TRY(add(take()));
    Batch landed;
    TRY(land(landed));
    if (commit_is_due(clock_.now())) TRY(commit(landed));
    if (landed.entries > 0) TRY(acknowledge(landed));
    const bool late = unsynced_since_ && clock_.now() >= *unsynced_since_ + kLongestUnsynced;
    if (late || (unsynced_since_ && next == Next::Idle)) TRY(sync_acknowledged());
    return tidy(next == Next::Idle);
}

std::vector<EntryPtr> SqliteLog::take() {
    std::vector<EntryPtr> taken;
    std::lock_guard lock(mutex_);
    while (!queue_.empty() && !open_.full()) {
        ++open_.entries;
        open_.bytes += bytes_of(*queue_.front());
        open_.last = queue_.front()->revision;
        taken.push_back(std::move(queue_.front()));
        queue_.pop_front();
    }
    return taken;
}

Status SqliteLog::add(const std::vector<EntryPtr>& entries) {
    if (entries.empty()) return {};
    TRY(file_->add(entries));
    for (const EntryPtr& entry : entries) {
        for (const EventPtr& event : entry->events) {
            garbage_.add(*event->record, event->type == Event::Type::Deleted, event->previous.get());
        }
    }
    return {};
}

// What the other thread has made safe, if it has.
Status SqliteLog::land(Batch& landed) {
    std::lock_guard lock(mutex_);
    if (!synced_) return {};
    landed = std::exchange(flying_, {});
    return *std::exchange(synced_, std::nullopt);
}

// A few entries are made safe here; for many the other thread waits, while we go on with those that come meanwhile.
Status SqliteLog::commit(Batch& landed) {
    TRY(file_->commit());
    const Batch batch = std::exchange(open_, {});
    last_size_ = batch.entries;
    committed_at_ = clock_.now();
    if (batch.entries < kWorthWaiting && landed.entries == 0) {
        TRY(file_->sync());
        landed = batch;
    } else {
        flying_ = batch;
        syncer_->start();
    }
    return {};
}

Status SqliteLog::acknowledge(const Batch& landed) {
    TRY(file_->acknowledge(landed.last));
    acknowledged_at_ = clock_.now();
    if (!unsynced_since_) unsynced_since_ = acknowledged_at_;
    sink_->durable(landed.last);
    return {};
}

Status SqliteLog::sync_acknowledged() {
    unsynced_since_.reset();
    return file_->sync_acknowledged();
}

Status SqliteLog::tidy(bool idle) {
    if (open_.entries > 0) return {};
    if ((idle && garbage_.too_much()) || garbage_.far_too_much()) TRY(compact());
    return file_->checkpoint(flying_.entries > 0);
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
    return std::unique_ptr<Log>(
        std::make_unique<SqliteLog>(std::move(lock), std::move(file), options.keep, *options.clock));
}

}  // namespace berth::store
