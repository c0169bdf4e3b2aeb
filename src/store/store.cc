#include "store/store.h"

#include <algorithm>

#include "store/kind_table.h"
#include "store/pending.h"
#include "store/refusals.h"

// Opening, reading and watching; writing is in commit.cc.
namespace berth::store {

Store::Store(std::unique_ptr<Log> log, Options options) : options_(options), log_(std::move(log)) {}

Store::~Store() {
    log_->close();
    for (auto& pending : pending_) {
        for (auto& waiter : pending.waiters) waiter.done(closed());
    }
}

Result<std::unique_ptr<Store>> Store::open(std::unique_ptr<Log> log, Options options) {
    std::unique_ptr<Store> store(new Store(std::move(log), options));
    TRY(store->recover());
    store->log_->start(*store);
    return store;
}

Status Store::recover() {
    const auto now = options_.clock->now();
    const Log::Extent extent = log_->extent();
    floor_ = extent.floor;
    TRY(log_->replay([&](Log::Change change) { return remember(std::move(change), now); }));
    durable_ = accepted_ = extent.last;
    for (const auto& [name, kind] : tables_) recovered_.objects += kind->size();
    recovered_.revision = durable_;
    trim(now);
    return {};
}

RecordPtr Store::remember(Log::Change change, base::Instant now) {
    KindTable& kind = table(change.record->key.kind);
    const bool told = change.record->revision > floor_;
    RecordPtr previous = change.deleted ? kind.erase(place_of(change.record->key)) : kind.put(change.record);
    if (EventPtr event = told ? event_of(std::move(change), previous) : nullptr) {
        kind.history().push(std::move(event), now);
    }
    return previous;
}

KindTable& Store::table(const std::string& kind) {
    auto it = tables_.find(kind);
    if (it == tables_.end()) it = tables_.emplace(kind, std::make_unique<KindTable>(floor_)).first;
    return *it->second;
}

const KindTable* Store::find_table(const std::string& kind) const {
    const auto it = tables_.find(kind);
    return it == tables_.end() ? nullptr : it->second.get();
}

RecordPtr Store::find(const Key& key) const {
    if (const auto it = head_.find(key); it != head_.end()) {
        return it->second->type == Event::Type::Deleted ? nullptr : it->second->record;
    }
    const KindTable* kind = find_table(key.kind);
    return kind ? kind->find(place_of(key)) : nullptr;
}

RecordPtr Store::head(const Key& key) const {
    std::lock_guard lock(mutex_);
    return find(key);
}

RecordPtr Store::get(const Key& key) const {
    std::lock_guard lock(mutex_);
    const KindTable* kind = find_table(key.kind);
    return kind ? kind->find(place_of(key)) : nullptr;
}

Status Store::reachable(Revision revision, const std::string& name) const {
    if (revision > durable_) return too_new(revision, durable_);
    const KindTable* kind = find_table(name);
    const Revision oldest = kind ? kind->history().floor() : floor_;
    if (revision < oldest) return too_old(revision, oldest);
    return {};
}

Result<Page> Store::list(const Listing& listing) const {
    std::lock_guard lock(mutex_);
    const Revision at = listing.at.value_or(durable_);
    TRY(reachable(at, listing.kind));
    const KindTable* kind = find_table(listing.kind);
    if (kind) return kind->list(listing, at);
    Page empty;
    empty.revision = at;
    return empty;
}

Result<std::unique_ptr<Watch>> Store::watch(Selector selector, Revision from, std::function<void()> notify) {
    auto watcher = std::make_shared<Watcher>();
    watcher->position = from;
    watcher->notify = std::move(notify);
    watcher->selector = std::move(selector);
    std::lock_guard lock(mutex_);
    TRY(reachable(from, watcher->selector.kind));
    table(watcher->selector.kind).add(watcher);
    return std::unique_ptr<Watch>(new Watch(*this, std::move(watcher)));
}

Revision Store::revision() const {
    std::lock_guard lock(mutex_);
    return durable_;
}

size_t Store::count(const std::string& kind) const {
    std::lock_guard lock(mutex_);
    const KindTable* found = find_table(kind);
    return found ? found->size() : 0;
}

std::vector<std::string> Store::kinds() const {
    std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, kind] : tables_) {
        if (kind->size() > 0) names.push_back(name);
    }
    return names;
}

std::optional<Error> Store::failure() const {
    std::lock_guard lock(mutex_);
    return failure_;
}

void Store::set_guard(Guard* guard) {
    std::lock_guard lock(mutex_);
    guard_ = guard;
}

// Drops what the limits allow. The total is bounded whatever the other limits say; a kind with much history does not
// cost the quiet ones theirs.
void Store::trim(base::Instant now) {
    size_t total = 0;
    for (const auto& [name, kind] : tables_) {
        kind->history().trim(options_.history, now);
        total += kind->history().bytes();
    }
    // Of what is older than `age`, until no more than `limit` is left of all.
    const auto shed = [&](size_t limit, base::Duration age) {
        while (total > limit) {
            History* most = nullptr;
            for (const auto& [name, kind] : tables_) {
                History& history = kind->history();
                if (history.size() == 0 || now - history.oldest() < age) continue;
                if (most == nullptr || history.bytes() > most->bytes()) most = &history;
            }
            if (most == nullptr) return;
            const size_t before = most->bytes();
            most->drop_oldest();
            total -= before - most->bytes();
        }
    };
    shed(options_.history.aged_bytes, options_.history.keep_age);
    shed(options_.history.max_bytes, base::Duration::zero());
}

void Store::forget_aged() {
    std::lock_guard lock(mutex_);
    trim(options_.clock->now());
}

}  // namespace berth::store
