#pragma once

#include <absl/container/flat_hash_map.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/brief_mutex.h"
#include "base/clock.h"
#include "base/result.h"
#include "store/guard.h"
#include "store/log.h"
#include "store/record.h"
#include "store/watch.h"

namespace berth::store {

// How much of the past is kept in memory, for watches that resume and lists at an older revision. An event is dropped
// when `keep_events` newer ones of its kind exist and it is older than `keep_age`; when it is older than that and all
// histories together hold more than `aged_bytes`; and whenever they hold more than `max_bytes`. The kind that holds
// most loses first.
struct HistoryLimits {
    size_t keep_events = 10'000;
    base::Duration keep_age = std::chrono::minutes(5);
    size_t aged_bytes = 32 << 20;
    size_t max_bytes = 128 << 20;
};

struct Options {
    HistoryLimits history = {};
    size_t max_pending_bytes = 64 << 20;  // accepted and not yet durable; above it submit() answers TooManyRequests
    const base::Clock* clock = &base::system_clock();
};

struct Listing {
    std::string kind;
    std::optional<std::string> ns = {};
    size_t limit = 0;  // 0: everything
    // The last key of the page before: the page starts behind it. Only ns and name are meant.
    std::optional<Key> after = {};
    std::optional<Revision> at = {};  // a snapshot; unset: now
};

struct Page {
    std::vector<RecordPtr> records;
    Revision revision = 0;         // of the snapshot: watch from here, page on `at` here
    std::optional<Key> next = {};  // set when there is more: the `after` of the next page
    size_t remaining = 0;          // how many there are behind this page
};

class KindTable;

// Versioned objects, in memory and in a log.
//
// A write is visible to get, list and watch only when it is durable; preconditions and the guard see the pending head.
// When the log fails, every pending write fails (whether it was kept is then unknown until a restart), every later one
// is refused, and reads go on.
//
// Thread affinity: any thread, one mutex inside (docs/adr). Callbacks run without it, so they may call the store.
class Store : private Log::Sink, private Head {
public:
    using Done = std::function<void(Result<Commit>)>;

    struct Recovered {
        size_t objects = 0;
        Revision revision = 0;
    };

    static Result<std::unique_ptr<Store>> open(std::unique_ptr<Log> log, Options options = {});
    // Waits for the log to finish what is pending. No Watch may be left.
    ~Store() override;
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    // What open() found in the log.
    Recovered recovered() const { return recovered_; }

    // Accepts or refuses at once, against the pending head. `done` is called exactly once: with a refusal before
    // submit() returns; with success when durable. That is on the log's thread, in the order of revisions (and so
    // should be brief), or with memory_log() before submit() returns, by the thread that came first.
    void submit(const Txn&, Done);
    // submit() and wait. Not from a callback, and not with a log that nobody drives.
    Result<Commit> commit(const Txn&);

    // The pending head, for a read before a write; not to be shown to anybody. Null when the key is free.
    RecordPtr head(const Key&) const;
    // Durable. Null when there is none.
    RecordPtr get(const Key&) const;
    // Expired (410) when `at` is older than the history; Timeout (504, ResourceVersionTooLarge) when it is not reached.
    Result<Page> list(const Listing&) const;
    // Events after `from`; errors as list's. `notify` is called when something new is there, then not again until
    // poll() has returned empty. It runs on the thread that made the write durable, must be brief, and must neither
    // call this Watch nor destroy it (post to your own loop). When ~Watch returns it is not running and never will.
    Result<std::unique_ptr<Watch>> watch(Selector, Revision from, std::function<void()> notify = {});

    // The newest durable revision.
    Revision revision() const;
    size_t count(const std::string& kind) const;
    // The kinds that have objects.
    std::vector<std::string> kinds() const;
    // Drops what has aged; also done with every write, so this is for quiet times.
    void forget_aged();
    // Why writes are refused for good, if they are.
    std::optional<Error> failure() const;

    // Before the first submit(), or null to remove it. Not owned.
    void set_guard(Guard*);

private:
    friend class Watch;
    struct Pending;
    struct Staged;

    Store(std::unique_ptr<Log> log, Options options);
    Status recover();
    RecordPtr remember(Log::Change, base::Instant now);

    void durable(Revision up_to) override;
    void failed(Error) override;
    RecordPtr find(const Key&) const override;

    using Prepared = std::vector<std::shared_ptr<void>>;  // of each write; empty without a guard
    std::optional<Result<Commit>> accept(const Txn&, Prepared, Done&);
    Result<Staged> stage(const Txn&, Prepared) const;
    void enqueue(Staged, Done);
    void publish(const Pending&, base::Instant now);
    void trim(base::Instant now);
    KindTable& table(const std::string& kind);
    const KindTable* find_table(const std::string& kind) const;
    Status reachable(Revision, const std::string& kind) const;

    const Options options_;
    std::unique_ptr<Log> log_;
    Recovered recovered_;

    mutable base::BriefMutex mutex_;
    std::atomic<Guard*> guard_ = nullptr;  // looked at before the lock is taken, too
    Revision durable_ = 0;
    Revision accepted_ = 0;
    Revision floor_ = 0;  // what the log no longer knew when we started
    std::map<std::string, std::unique_ptr<KindTable>, std::less<>> tables_;
    std::deque<Pending> pending_;  // in the order of revisions
    size_t pending_bytes_ = 0;
    absl::flat_hash_map<Key, EventPtr> head_;  // of the keys that pending transactions change, the newest change
    std::optional<Error> failure_;
};

}  // namespace berth::store
