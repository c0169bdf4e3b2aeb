#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"

namespace berth::ledger {

// Objects of one kind by full name, each as last seen and, over it, as a decision of ours will leave it. Events may
// come late, twice or out of order: an older revision of the same object changes nothing.
template <class T>
class Objects {
public:
    using Ptr = std::shared_ptr<const T>;

    // False when what is known is newer.
    bool put(Ptr object) {
        Entry& entry = entries_[object->meta.full_name()];
        const bool same = entry.seen && entry.seen->meta.uid == object->meta.uid;
        const bool newer = !same || object->meta.revision > entry.seen->meta.revision;
        if (same && object->meta.revision < entry.seen->meta.revision) return false;
        if (newer) entry.assumed = nullptr;
        entry.seen = std::move(object);
        return true;
    }
    // A delete that names another uid came late: the name belongs to a new object.
    bool remove(std::string_view full_name, std::string_view uid) {
        const auto found = entries_.find(full_name);
        if (found == entries_.end()) return false;
        if (!uid.empty() && found->second.seen->meta.uid != uid) return false;
        entries_.erase(found);
        return true;
    }
    // Stands until a newer revision is seen, or until dropped.
    void assume(Ptr object) { entries_.at(object->meta.full_name()).assumed = std::move(object); }
    void drop_assumed(std::string_view full_name) {
        const auto found = entries_.find(full_name);
        if (found != entries_.end()) found->second.assumed = nullptr;
    }

    Ptr find(std::string_view full_name) const {
        const auto found = entries_.find(full_name);
        if (found == entries_.end()) return nullptr;
        return found->second.assumed ? found->second.assumed : found->second.seen;
    }
    // As the server has it, without our own decisions.
    Ptr seen(std::string_view full_name) const {
        const auto found = entries_.find(full_name);
        return found == entries_.end() ? nullptr : found->second.seen;
    }
    size_t size() const { return entries_.size(); }
    // By name.
    std::vector<Ptr> sorted() const {
        std::vector<Ptr> all;
        for (const auto& [name, entry] : entries_) all.push_back(entry.assumed ? entry.assumed : entry.seen);
        std::sort(all.begin(), all.end(),
                  [](const Ptr& a, const Ptr& b) { return a->meta.full_name() < b->meta.full_name(); });
        return all;
    }

private:
    struct Entry {
        Ptr seen;
        Ptr assumed;
    };
    base::StringMap<Entry> entries_;
};

}  // namespace berth::ledger
