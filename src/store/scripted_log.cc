#include "store/scripted_log.h"

#include <algorithm>

namespace berth::store {

Status ScriptedLog::replay(const Replay& visit) {
    for (const EntryPtr& entry : disk_.entries) {
        for (const EventPtr& event : entry->events) {
            visit({event->record, event->type == Event::Type::Deleted});
        }
    }
    return {};
}

void ScriptedLog::sync_silently(size_t count) {
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(count, waiting_.size()));
    for (auto it = waiting_.begin(); it != end; ++it) {
        disk_.last = (*it)->revision;
        disk_.entries.push_back(std::move(*it));
    }
    waiting_.erase(waiting_.begin(), end);
}

void ScriptedLog::sync(size_t count) {
    sync_silently(count);
    if (sink_) sink_->durable(disk_.last);
}

void ScriptedLog::fail(Error error) {
    waiting_.clear();
    if (sink_) sink_->failed(std::move(error));
}

}  // namespace berth::store
