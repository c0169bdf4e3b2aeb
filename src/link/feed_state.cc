#include "link/feed_state.h"

#include <algorithm>

namespace berth::link {

void FeedState::tell_gone(const std::string& name, const Known& known, uint64_t revision) {
    tell_({FeedEvent::Type::Gone, std::make_shared<const std::string>(last_words(name, known.uid)), revision});
}

void FeedState::begin_list(uint64_t revision) {
    ++round_;
    listed_ = revision;
    if (revision >= newest_) return;
    for (const auto& [name, known] : known_) tell_gone(name, known, known.revision);
    known_.clear();
    newest_ = 0;
}

void FeedState::put(Listed object) {
    newest_ = std::max(newest_, object.revision);
    const auto [found, fresh] = known_.try_emplace(object.name);
    Known& known = found->second;
    known.round = round_;
    if (!fresh && known.uid == object.uid) {
        // Twice, or late: a newer state was told already.
        if (object.revision != 0 && object.revision <= known.revision) return;
    } else if (!fresh) {
        // Another object under the same name: the old one went in between.
        tell_gone(object.name, known, object.revision);
    }
    known.uid = object.uid;
    known.revision = object.revision;
    tell_({FeedEvent::Type::Put, std::make_shared<const std::string>(std::move(object.text)), object.revision});
}

void FeedState::end_list(bool all_read) {
    std::vector<std::string> missing;
    for (const auto& [name, known] : known_) {
        if (all_read && known.round != round_) missing.push_back(name);
    }
    std::sort(missing.begin(), missing.end());
    for (const auto& name : missing) {
        const auto found = known_.find(name);
        tell_gone(name, found->second, listed_);
        known_.erase(found);
    }
    newest_ = std::max(newest_, listed_);
    tell_({FeedEvent::Type::Synced, nullptr, listed_});
}

void FeedState::list_nothing() {
    begin_list(newest_);
    end_list();
}

void FeedState::gone(const Listed& object) {
    newest_ = std::max(newest_, object.revision);
    const auto found = known_.find(object.name);
    if (found == known_.end() || found->second.uid != object.uid) return;
    known_.erase(found);
    tell_({FeedEvent::Type::Gone, std::make_shared<const std::string>(object.text), object.revision});
}

}  // namespace berth::link
