#pragma once

#include <absl/container/btree_set.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "store/history.h"
#include "store/record.h"
#include "store/store.h"
#include "store/watch.h"

namespace berth::store {

// Where a record stands within its kind.
using Place = std::pair<std::string_view, std::string_view>;  // ns, name

inline Place place_of(const Key& key) {
    return {key.ns, key.name};
}

struct PlaceOrder {
    using is_transparent = void;
    bool operator()(const RecordPtr& a, const RecordPtr& b) const { return place_of(a->key) < place_of(b->key); }
    bool operator()(const RecordPtr& a, const Place& b) const { return place_of(a->key) < b; }
    bool operator()(const Place& a, const RecordPtr& b) const { return a < place_of(b->key); }
};

// What the store knows of a Watch. Everything but `notify` is under the store's lock.
//
// Invariant: while `armed`, no event after `position` matches the selector.
struct Watcher {
    Selector selector;
    Revision position = 0;
    bool armed = false;

    std::mutex notify_mutex;  // held while notify runs, so that ~Watch can wait for it
    std::function<void()> notify;
};

// The objects of one kind: as they stand, the recent changes, and who watches. Has no lock of its own.
class KindTable {
public:
    explicit KindTable(Revision floor) : history_(floor) {}

    RecordPtr find(Place) const;
    size_t size() const { return records_.size(); }
    const History& history() const { return history_; }
    History& history() { return history_; }

    // Set or remove without an event; what stood there before, if anything.
    RecordPtr put(RecordPtr);
    RecordPtr erase(Place);
    void apply(EventPtr, base::Instant now);

    // As it was at `revision`, which the history must reach.
    Page list(const Listing&, Revision revision) const;

    void add(std::shared_ptr<Watcher>);
    void remove(const Watcher&);
    // Disarms the watchers that something after `since` concerns, and appends them to `out`.
    void wake(Revision since, std::vector<std::shared_ptr<Watcher>>& out);

private:
    absl::btree_set<RecordPtr, PlaceOrder> records_;
    History history_;
    std::vector<std::shared_ptr<Watcher>> watchers_;
};

}  // namespace berth::store
