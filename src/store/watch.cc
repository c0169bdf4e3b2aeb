#include "store/watch.h"

#include <algorithm>

#include "store/kind_table.h"
#include "store/refusals.h"
#include "store/store.h"

namespace berth::store {

bool Selector::matches(const Key& key) const {
    return (!ns || key.ns == *ns) && (!name || key.name == *name) && key.kind == kind;
}

Watch::Watch(Store& store, std::shared_ptr<Watcher> watcher) : store_(store), watcher_(std::move(watcher)) {}

Watch::~Watch() {
    {
        std::lock_guard lock(store_.mutex_);
        store_.table(watcher_->selector.kind).remove(*watcher_);
    }
    std::lock_guard lock(watcher_->notify_mutex);
    watcher_->notify = nullptr;
}

Result<std::vector<EventPtr>> Watch::poll(size_t max) {
    std::vector<EventPtr> events;
    std::lock_guard lock(store_.mutex_);
    Watcher& watcher = *watcher_;
    if (watcher.armed) return events;
    const History& history = store_.table(watcher.selector.kind).history();
    if (watcher.position < history.floor()) return too_old(watcher.position, history.floor());
    Revision seen = watcher.position;
    for (size_t i = history.first_after(watcher.position); i < history.size(); ++i) {
        const Revision revision = history[i]->record->revision;
        if (revision != seen && events.size() >= std::max<size_t>(max, 1)) {
            watcher.position = seen;
            return events;
        }
        if (watcher.selector.matches(history[i]->record->key)) events.push_back(history[i]);
        seen = revision;
    }
    watcher.position = store_.durable_;
    watcher.armed = events.empty();
    return events;
}

Revision Watch::progress() const {
    std::lock_guard lock(store_.mutex_);
    return watcher_->armed ? store_.durable_ : watcher_->position;
}

}  // namespace berth::store
