#include "link/local.h"

#include <absl/container/flat_hash_set.h>

#include "base/check.h"

namespace berth::link {
namespace {

class StoreFeed final : public Feed {
public:
    StoreFeed(store::Store& store, std::string kind, std::function<void()> notify)
        : store_(store), kind_(std::move(kind)), notify_(std::move(notify)) {}

    std::vector<FeedEvent> poll(size_t most) override {
        if (!watch_) return relist();
        auto events = watch_->poll(most);
        if (!events) return relist();
        std::vector<FeedEvent> out;
        out.reserve(events->size());
        for (const auto& event : *events) {
            const auto& record = *event->record;
            const bool gone = event->type == store::Event::Type::Deleted;
            keep(event->record, gone);
            out.push_back({gone ? FeedEvent::Type::Gone : FeedEvent::Type::Put, record.bytes, record.revision,
                           std::shared_ptr<const base::Memo>(event, &event->memo)});
        }
        return out;
    }

private:
    // By name: another version of an object is the same entry.
    struct NameHash {
        size_t operator()(const store::RecordPtr& record) const {
            return absl::HashOf(record->key.ns, record->key.name);
        }
    };
    struct SameName {
        bool operator()(const store::RecordPtr& a, const store::RecordPtr& b) const {
            return a->key.name == b->key.name && a->key.ns == b->key.ns;
        }
    };
    using Known = absl::flat_hash_set<store::RecordPtr, NameHash, SameName>;

    void keep(const store::RecordPtr& record, bool gone) {
        if (gone) {
            known_.erase(record);
        } else if (const auto [place, fresh] = known_.insert(record); !fresh) {
            const_cast<store::RecordPtr&>(*place) = record;  // of the same name, so its place in the set is the same
        }
    }

    // At the start, and when the history no longer reaches back to where we stood.
    std::vector<FeedEvent> relist() {
        watch_.reset();
        const auto page = store_.list({.kind = kind_});
        CHECK(page.ok());
        std::vector<FeedEvent> out;
        for (const auto& record : page->records) {
            const auto before = known_.find(record);
            // Another object under the same name: the old one went in between.
            if (before != known_.end() && (*before)->uid != record->uid) {
                out.push_back({FeedEvent::Type::Gone, (*before)->bytes, page->revision});
            }
            out.push_back({FeedEvent::Type::Put, record->bytes, record->revision});
        }
        Known now(page->records.begin(), page->records.end());
        for (const auto& record : known_) {
            if (!now.contains(record)) out.push_back({FeedEvent::Type::Gone, record->bytes, page->revision});
        }
        out.push_back({FeedEvent::Type::Synced, nullptr, page->revision});
        known_ = std::move(now);
        auto watch = store_.watch({.kind = kind_}, page->revision, notify_);
        if (watch) watch_ = std::move(*watch);
        return out;
    }

    store::Store& store_;
    std::string kind_;
    std::function<void()> notify_;
    std::unique_ptr<store::Watch> watch_;
    Known known_;
};

}  // namespace

std::unique_ptr<Feed> LocalServer::follow(const Resource& resource, std::function<void()> notify) {
    return std::make_unique<StoreFeed>(
        store_, resource.group.empty() ? resource.plural : resource.group + "/" + resource.plural, std::move(notify));
}

}  // namespace berth::link
