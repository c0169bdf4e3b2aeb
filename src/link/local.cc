#include "link/local.h"

#include <map>

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
            if (gone) {
                known_.erase({record.key.ns, record.key.name});
            } else {
                known_[{record.key.ns, record.key.name}] = event->record;
            }
            out.push_back({gone ? FeedEvent::Type::Gone : FeedEvent::Type::Put, record.bytes, record.revision});
        }
        return out;
    }

private:
    using Name = std::pair<std::string, std::string>;

    // At the start, and when the history no longer reaches back to where we stood.
    std::vector<FeedEvent> relist() {
        watch_.reset();
        const auto page = store_.list({.kind = kind_});
        CHECK(page.ok());
        std::map<Name, store::RecordPtr> now;
        std::vector<FeedEvent> out;
        for (const auto& record : page->records) {
            now.emplace(Name{record->key.ns, record->key.name}, record);
            const auto before = known_.find({record->key.ns, record->key.name});
            // Another object under the same name: the old one went in between.
            if (before != known_.end() && before->second->uid != record->uid) {
                out.push_back({FeedEvent::Type::Gone, before->second->bytes, page->revision});
            }
            out.push_back({FeedEvent::Type::Put, record->bytes, record->revision});
        }
        for (const auto& [name, record] : known_) {
            if (!now.contains(name)) out.push_back({FeedEvent::Type::Gone, record->bytes, page->revision});
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
    std::map<Name, store::RecordPtr> known_;
};

}  // namespace

std::unique_ptr<Feed> LocalServer::follow(const Resource& resource, std::function<void()> notify) {
    return std::make_unique<StoreFeed>(
        store_, resource.group.empty() ? resource.plural : resource.group + "/" + resource.plural, std::move(notify));
}

}  // namespace berth::link
