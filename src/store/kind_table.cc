#include "store/kind_table.h"

#include <absl/container/btree_map.h>

#include <algorithm>

namespace berth::store {
namespace {

// Keys that changed after a snapshot, with what stood there at the snapshot (null: nothing).
using Past = absl::btree_map<Place, RecordPtr>;

bool selected(const Listing& listing, Place place) {
    if (listing.ns && place.first != *listing.ns) return false;
    return !listing.after || place > place_of(*listing.after);
}

Past past_of(const History& history, const Listing& listing, Revision revision) {
    Past past;
    for (size_t i = history.first_after(revision); i < history.size(); ++i) {
        const Event& event = *history[i];
        const Place place = place_of(event.record->key);
        if (selected(listing, place)) past.try_emplace(place, event.previous);
    }
    return past;
}

// Collects up to the limit, then counts.
class PageMaker {
public:
    PageMaker(size_t limit, Revision revision) : limit_(limit) { page_.revision = revision; }
    void take(const RecordPtr& record) {
        if (limit_ == 0 || page_.records.size() < limit_) {
            page_.records.push_back(record);
        } else {
            ++page_.remaining;
        }
    }
    Page done() && {
        if (page_.remaining > 0) page_.next = page_.records.back()->key;
        return std::move(page_);
    }

private:
    size_t limit_;
    Page page_;
};

}  // namespace

RecordPtr KindTable::find(Place place) const {
    const auto it = slots_.find(place);
    return it == slots_.end() ? nullptr : **it;
}

RecordPtr KindTable::put(RecordPtr record) {
    const auto it = slots_.find(place_of(record->key));
    // The same place, so hash and order hold.
    if (it != slots_.end()) return std::exchange(**it, std::move(record));
    order_.insert(slots_.insert(std::make_unique<RecordPtr>(std::move(record))).first->get());
    return nullptr;
}

RecordPtr KindTable::erase(Place place) {
    const auto it = slots_.find(place);
    if (it == slots_.end()) return nullptr;
    order_.erase(it->get());
    RecordPtr last = std::move(**it);
    slots_.erase(it);
    return last;
}

void KindTable::apply(EventPtr event, base::Instant now) {
    if (event->type == Event::Type::Deleted) {
        erase(place_of(event->record->key));
    } else {
        put(event->record);
    }
    history_.push(std::move(event), now);
}

Page KindTable::list(const Listing& listing, Revision revision) const {
    const Past past = past_of(history_, listing, revision);
    Place start{listing.ns ? std::string_view(*listing.ns) : std::string_view(), {}};
    if (listing.after) start = std::max(start, place_of(*listing.after));
    PageMaker page(listing.limit, revision);
    auto now = order_.lower_bound(start);
    auto then = past.begin();
    if (now != order_.end() && listing.after && place_of(*now) == place_of(*listing.after)) ++now;
    const auto ended = [&] { return now == order_.end() || (listing.ns && place_of(*now).first != *listing.ns); };
    while (true) {
        if (then != past.end() && (ended() || then->first <= place_of(*now))) {
            if (!ended() && then->first == place_of(*now)) ++now;
            if (then->second) page.take(then->second);
            ++then;
        } else if (!ended()) {
            page.take(**now);
            ++now;
        } else {
            return std::move(page).done();
        }
    }
}

void KindTable::add(std::shared_ptr<Watcher> watcher) {
    watchers_.push_back(std::move(watcher));
}

void KindTable::remove(const Watcher& watcher) {
    const auto it =
        std::find_if(watchers_.begin(), watchers_.end(), [&](const auto& each) { return each.get() == &watcher; });
    if (it == watchers_.end()) return;
    std::swap(*it, watchers_.back());
    watchers_.pop_back();
}

void KindTable::wake(Revision since, std::vector<std::shared_ptr<Watcher>>& out) {
    const size_t first = history_.first_after(since);
    if (first == history_.size()) return;
    for (const auto& watcher : watchers_) {
        if (!watcher->armed) continue;
        for (size_t i = first; i < history_.size(); ++i) {
            const Record& record = *history_[i]->record;
            if (!watcher->selector.matches(record.key)) continue;
            watcher->armed = false;
            watcher->position = record.revision - 1;
            out.push_back(watcher);
            break;
        }
    }
}

}  // namespace berth::store
