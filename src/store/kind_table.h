#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_set.h>

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

// A record and its later versions, at one address: by name they are looked up, in order they are listed.
using Slot = std::unique_ptr<RecordPtr>;

inline Place place_of(const RecordPtr* slot) {
    return place_of((*slot)->key);
}
inline Place place_of(const Slot& slot) {
    return place_of(slot.get());
}
inline Place place_of(Place place) {
    return place;
}

struct PlaceHash {
    using is_transparent = void;
    template <class T>
    size_t operator()(const T& one) const {
        return absl::HashOf(place_of(one));
    }
};
struct SamePlace {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
        return place_of(a) == place_of(b);
    }
};
struct PlaceOrder {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
        return place_of(a) < place_of(b);
    }
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
    size_t size() const { return slots_.size(); }
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
    absl::flat_hash_set<Slot, PlaceHash, SamePlace> slots_;
    absl::btree_set<const RecordPtr*, PlaceOrder> order_;  // of the slots
    History history_;
    std::vector<std::shared_ptr<Watcher>> watchers_;
};

}  // namespace berth::store
