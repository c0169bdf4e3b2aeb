#include <algorithm>
#include <future>

#include "store/kind_table.h"
#include "store/pending.h"
#include "store/refusals.h"
#include "store/store.h"

// Writing: preconditions, the guard, the way through the log, and what is told afterwards.
namespace berth::store {
namespace {

Status names_each_once(const Txn& txn) {
    if (txn.writes.empty()) return base::bad_request("a transaction needs at least one write");
    if (txn.writes.size() == 1) return {};
    if (txn.writes.size() > kMaxWrites) return base::bad_request("a transaction has too many writes");
    std::vector<const Key*> keys;
    for (const Write& write : txn.writes) keys.push_back(&write.key);
    std::sort(keys.begin(), keys.end(), [](const Key* a, const Key* b) { return *a < *b; });
    const auto twice = std::adjacent_find(keys.begin(), keys.end(), [](auto* a, auto* b) { return *a == *b; });
    if (twice != keys.end()) return base::bad_request("a transaction writes " + to_text(**twice) + " twice");
    return {};
}

Status holds(const Write& write, const RecordPtr& now) {
    if (write.op == Op::Create) {
        if (now) return already_exists(write.key);
        return {};
    }
    if (!now) return missing(write.key);
    if (write.if_uid && *write.if_uid != now->uid) return other_uid(write.key, *write.if_uid, now->uid);
    if (write.if_revision && *write.if_revision != now->revision) return changed(write.key);
    return {};
}

RecordPtr written(const Write& write, const Record* last, Revision revision, uint16_t part) {
    auto record = std::make_shared<Record>();
    record->key = write.key;
    record->bytes = write.bytes;
    record->uid = last ? last->uid : write.uid;
    record->created = last ? last->created : revision;
    record->revision = revision;
    record->part = part;
    return record;
}

// Null when the write changes nothing.
EventPtr event_of(const Write& write, const RecordPtr& now, Revision revision, uint16_t part) {
    using Type = Event::Type;
    if (write.op == Op::Delete) {
        return std::make_shared<Event>(Event{Type::Deleted, deleted(*now, revision, part), now});
    }
    CHECK(write.op == Op::Check || write.bytes);
    if (write.op == Op::Check || (now && *now->bytes == *write.bytes)) return nullptr;
    return std::make_shared<Event>(
        Event{now ? Type::Modified : Type::Added, written(write, now.get(), revision, part), now});
}

}  // namespace

RecordPtr deleted(const Record& last, Revision revision, uint16_t part) {
    auto record = std::make_shared<Record>(last);
    record->revision = revision;
    record->part = part;
    return record;
}

EventPtr event_of(Log::Change change, RecordPtr previous) {
    using Type = Event::Type;
    if (change.deleted) {
        if (!previous) return nullptr;
        RecordPtr gone = deleted(*previous, change.record->revision, change.record->part);
        return std::make_shared<Event>(Event{Type::Deleted, std::move(gone), std::move(previous)});
    }
    return std::make_shared<Event>(
        Event{previous ? Type::Modified : Type::Added, std::move(change.record), std::move(previous)});
}

void Store::submit(const Txn& txn, Done done) {
    Prepared prepared;
    if (const Guard* guard = guard_) {
        for (const Write& write : txn.writes) prepared.push_back(guard->prepare(write));
    }
    std::optional<Result<Commit>> answer;
    {
        std::lock_guard lock(mutex_);
        answer = accept(txn, std::move(prepared), done);
    }
    if (answer) {
        done(std::move(*answer));
    } else {
        log_->kick();
    }
}

Result<Commit> Store::commit(const Txn& txn) {
    // Shared: set_value() may still be running in the log's thread when get() has returned.
    auto promise = std::make_shared<std::promise<Result<Commit>>>();
    auto answer = promise->get_future();
    submit(txn, [promise](Result<Commit> result) { promise->set_value(std::move(result)); });
    return answer.get();
}

// The answer when it is known now; otherwise `done` is taken and waits.
std::optional<Result<Commit>> Store::accept(const Txn& txn, Prepared prepared, Done& done) {
    if (failure_) return *failure_;
    if (pending_bytes_ > options_.max_pending_bytes) return overloaded();
    auto staged = stage(txn, std::move(prepared));
    if (!staged) return std::move(staged).error();
    if (staged->events.empty()) {
        // Nothing changes, but what it rests on may still be on its way to the disk.
        const Revision rests_on = staged->commit.revision;
        if (rests_on <= durable_) return std::move(staged->commit);
        const auto it = std::lower_bound(pending_.begin(), pending_.end(), rests_on,
                                         [](const Pending& p, Revision r) { return p.entry->revision < r; });
        CHECK(it != pending_.end());
        it->waiters.push_back({std::move(staged->commit), std::move(done)});
        return std::nullopt;
    }
    if (Guard* guard = guard_) {
        if (auto admitted = guard->admit(staged->events, *this); !admitted) return std::move(admitted).error();
        for (const EventPtr& event : staged->events) event->prepared = nullptr;
    }
    enqueue(std::move(*staged), std::move(done));
    return std::nullopt;
}

Result<Store::Staged> Store::stage(const Txn& txn, Prepared prepared) const {
    TRY(names_each_once(txn));
    Staged staged;
    const Revision revision = accepted_ + 1;
    for (size_t i = 0; i < txn.writes.size(); ++i) {
        const Write& write = txn.writes[i];
        RecordPtr now = find(write.key);
        TRY(holds(write, now));
        EventPtr event = event_of(write, now, revision, static_cast<uint16_t>(staged.events.size()));
        staged.commit.records.push_back(event ? event->record : now);
        staged.commit.revision = std::max(staged.commit.revision, staged.commit.records.back()->revision);
        if (!event) continue;
        if (!prepared.empty()) event->prepared = std::move(prepared[i]);
        if (write.bytes) staged.bytes += write.bytes->size();
        staged.events.push_back(std::move(event));
    }
    return staged;
}

void Store::enqueue(Staged staged, Done done) {
    accepted_ = staged.commit.revision;
    for (const EventPtr& event : staged.events) head_[event->record->key] = event;
    auto entry = std::make_shared<const LogEntry>(LogEntry{staged.commit.revision, std::move(staged.events)});
    pending_bytes_ += staged.bytes;
    Pending pending{entry, staged.bytes, {}};
    pending.waiters.push_back({std::move(staged.commit), std::move(done)});
    pending_.push_back(std::move(pending));
    log_->append(std::move(entry));
}

void Store::durable(Revision up_to) {
    std::vector<Pending> finished;
    std::vector<std::shared_ptr<Watcher>> awake;
    {
        std::lock_guard lock(mutex_);
        if (pending_.empty() || pending_.front().entry->revision > up_to) return;
        const auto now = options_.clock->now();
        const Revision since = durable_;
        while (!pending_.empty() && pending_.front().entry->revision <= up_to) {
            finished.push_back(std::move(pending_.front()));
            pending_.pop_front();
            publish(finished.back(), now);
        }
        for (const auto& [name, kind] : tables_) kind->wake(since, awake);
        trim(now);
    }
    for (auto& each : finished) {
        for (auto& waiter : each.waiters) waiter.done(std::move(waiter.commit));
    }
    for (const auto& watcher : awake) {
        std::lock_guard lock(watcher->notify_mutex);
        if (watcher->notify) watcher->notify();
    }
}

// Makes one transaction part of what everybody sees.
void Store::publish(const Pending& pending, base::Instant now) {
    for (const EventPtr& event : pending.entry->events) {
        const Key& key = event->record->key;
        if (const auto it = head_.find(key); it != head_.end() && it->second == event) head_.erase(it);
        table(key.kind).apply(event, now);
    }
    durable_ = pending.entry->revision;
    pending_bytes_ -= pending.bytes;
}

void Store::failed(Error cause) {
    std::deque<Pending> lost;
    const Error error = log_failed(cause);
    {
        std::lock_guard lock(mutex_);
        failure_ = error;
        lost.swap(pending_);
        head_.clear();
        pending_bytes_ = 0;
        if (Guard* guard = guard_) guard->rolled_back(durable_);
    }
    for (auto& each : lost) {
        for (auto& waiter : each.waiters) waiter.done(error);
    }
}

}  // namespace berth::store
