#include "api/watch.h"

#include <fmt/format.h>

#include "api/render.h"
#include "api/versions.h"
#include "api/wire.h"

namespace berth::api {
namespace {

using store::Event;
using store::EventPtr;
using store::RecordPtr;

constexpr size_t kCachedLines = 8192;
constexpr size_t kCachedBytes = 16u << 20;
constexpr size_t kPullBytes = 256u << 10;
constexpr size_t kPollEvents = 256;
constexpr size_t kListPage = 500;
constexpr int64_t kBookmarkSeconds = 60;

std::string_view type_text(char type) {
    return type == 'A' ? "ADDED" : type == 'M' ? "MODIFIED" : "DELETED";
}

char type_letter(Event::Type type) {
    return type == Event::Type::Added ? 'A' : type == Event::Type::Modified ? 'M' : 'D';
}

class WatchSource final : public Source {
public:
    WatchSource(ApiContext& context, WatchRoom& room, const Call& call, const Form& form, Filter filter)
        : context_(context),
          room_(room),
          table_(call.table),
          kind_(*call.kind),
          form_(form),
          filter_(std::move(filter)),
          who_(call.who),
          bookmarks_(call.options.bookmarks) {
        const int64_t seconds = call.options.timeout_seconds.value_or(0);
        const int64_t lasts = seconds > 0 ? seconds : 1800 + static_cast<int64_t>(context.ids.below(1800));
        ends_ = context.clock.now() + std::chrono::seconds(lasts);
        last_bookmark_ = last_asked_ = context.clock.now();
    }

    ~WatchSource() override {
        watch_.reset();
        const std::lock_guard lock(room_.mutex);
        const auto found = room_.per_user.find(who_.user);
        if (--found->second == 0) room_.per_user.erase(found);
    }

    // Events after `from`. Too old a version is an event of its own.
    void follow(store::Selector selector, store::Revision from) {
        auto watch = context_.store.watch(std::move(selector), from, [this] {
            ready_.store(true, std::memory_order_release);
            room_.wake();
        });
        if (watch)
            watch_ = std::move(*watch);
        else
            failure_ = watch.error();
    }

    void begin_with(store::Listing listing, bool mark_end) {
        initial_ = std::move(listing);
        mark_initial_end_ = mark_end;
    }

    void stop() override { stopped_ = true; }

    State pull(std::string& out) override {
        if (failure_) return fail(out);
        if (initial_) return pull_initial(out);
        const auto now = context_.clock.now();
        if (now - last_asked_ >= std::chrono::seconds(1)) {
            last_asked_ = now;
            if (!context_.still_welcome(who_)) return end_of_credential(out);
        }
        if (stopped_ || now >= ends_) {
            bookmark(out);
            return State::Ended;
        }
        while (ready_.exchange(false, std::memory_order_acquire) || !drained_) {
            drained_ = false;
            if (next_ == polled_.size()) {
                auto events = watch_->poll(kPollEvents);
                if (!events) {
                    failure_ = events.error();
                    return fail(out);
                }
                polled_ = std::move(*events);
                next_ = 0;
                drained_ = polled_.empty();
            }
            // What is large goes out piece by piece: a page of it may be hundreds of MiB.
            while (next_ < polled_.size() && out.size() < kPullBytes) write(*polled_[next_++], out);
            if (out.size() >= kPullBytes) return State::More;
        }
        if (now - last_bookmark_ >= std::chrono::seconds(kBookmarkSeconds)) bookmark(out);
        return State::Waiting;
    }

private:
    // A client that takes bookmarks follows for long: with its next credential it goes on from the bookmark, where an
    // error would make it list everything again. Others are told why it is over.
    State end_of_credential(std::string& out) {
        if (bookmarks_) {
            bookmark(out);
            return State::Ended;
        }
        failure_ = Error{Reason::Unauthorized, "Unauthorized"};
        return fail(out);
    }

    State fail(std::string& out) {
        out += "{\"type\":\"ERROR\",\"object\":";
        base::append_text(status_json(*failure_), out);
        out += "}\n";
        return State::Ended;
    }

    State pull_initial(std::string& out) {
        auto page = context_.store.list(*initial_);
        if (!page) {
            failure_ = page.error();
            return fail(out);
        }
        for (const auto& record : page->records) {
            if (filter_.matches(record, room_.facets)) write_line('A', record, out);
            if (out.size() < kPullBytes || record == page->records.back()) continue;
            initial_->after = record->key;
            return State::More;
        }
        initial_->after = page->next;
        if (page->next) return State::More;
        initial_.reset();
        if (mark_initial_end_) write_bookmark(page->revision, true, out);
        return State::More;
    }

    // A selector makes its own events: what begins to match is added, what stops to match is deleted.
    void write(const Event& event, std::string& out) {
        if (filter_.everything()) return write_line(type_letter(event.type), event.record, out);
        const bool before = event.previous != nullptr && filter_.matches(event.previous, room_.facets);
        if (event.type == Event::Type::Deleted) {
            if (before) write_line('D', event.record, out);
            return;
        }
        const bool after = filter_.matches(event.record, room_.facets);
        if (after) return write_line(before ? 'M' : 'A', event.record, out);
        if (!before) return;
        auto gone = std::make_shared<store::Record>(*event.previous);
        gone->revision = event.record->revision;
        gone->part = event.record->part;
        write_line('D', gone, out);
    }

    void write_line(char type, const RecordPtr& record, std::string& out) {
        if (form_.shape == Form::Shape::Table) return write_table_line(type, *record, out);
        const EventCache::Id id{record->revision, record->part, type, form_.shape == Form::Shape::Metadata, &kind_};
        auto line = room_.events.find(id);
        if (line == nullptr) {
            auto fresh = std::make_shared<std::string>("{\"type\":\"");
            *fresh += type_text(type);
            *fresh += "\",\"object\":";
            render_object({kind_, form_, context_.clock.wall()}, *record, *fresh);
            *fresh += "}\n";
            line = fresh;
            if (!initial_) room_.events.put(id, line);
        }
        out += *line;
    }

    void write_table_line(char type, const store::Record& record, std::string& out) {
        out += "{\"type\":\"";
        out += type_text(type);
        out += "\",\"object\":";
        render_event_table({kind_, form_, context_.clock.wall()}, record, !columns_sent_, out);
        columns_sent_ = true;
        out += "}\n";
    }

    void bookmark(std::string& out) {
        last_bookmark_ = context_.clock.now();
        const bool all_told = next_ == polled_.size();
        if (bookmarks_ && watch_ != nullptr && all_told) write_bookmark(watch_->progress(), false, out);
    }

    void write_bookmark(store::Revision revision, bool initial_end, std::string& out) {
        const bool table = form_.shape == Form::Shape::Table;
        const bool metadata = form_.shape == Form::Shape::Metadata;
        JsonObject meta{{"resourceVersion", std::to_string(revision)}};
        if (initial_end) meta["annotations"] = JsonObject{{"k8s.io/initial-events-end", "true"}};
        JsonObject object{{"kind", kind_.kind}, {"apiVersion", kind_.api_version()}, {"metadata", std::move(meta)}};
        if (table || metadata) {
            object["kind"] = table ? "Table" : "PartialObjectMetadata";
            object["apiVersion"] = fmt::format("meta.k8s.io/{}", form_.meta_version);
        }
        if (table)
            object["rows"] = JsonArray{JsonObject{{"cells", JsonArray{}},
                                                  {"object", JsonObject{{"kind", "PartialObjectMetadata"},
                                                                        {"apiVersion", "meta.k8s.io/v1"},
                                                                        {"metadata", object["metadata"]}}}}};
        out += "{\"type\":\"BOOKMARK\",\"object\":";
        base::append_text(object, out);
        out += "}\n";
    }

    ApiContext& context_;
    WatchRoom& room_;
    std::shared_ptr<const model::Kinds> table_;  // keeps kind_
    const model::Kind& kind_;
    const Form form_;
    const Filter filter_;
    const Identity who_;
    const bool bookmarks_;
    base::Instant ends_;
    base::Instant last_bookmark_;
    base::Instant last_asked_;  // whether who watches still may
    std::optional<store::Listing> initial_;
    std::optional<Error> failure_;
    std::atomic<bool> ready_{true};
    std::vector<EventPtr> polled_;
    size_t next_ = 0;  // of polled_
    bool drained_ = true;
    bool stopped_ = false;
    bool mark_initial_end_ = false;
    bool columns_sent_ = false;
    std::unique_ptr<store::Watch> watch_;  // last: its callback uses the members above
};

Status take_place(WatchRoom& room, const Identity& who) {
    const std::lock_guard lock(room.mutex);
    const int most = who.in(kMasters) ? 10 * kMaxWatchesPerUser : kMaxWatchesPerUser;
    int& count = room.per_user[who.user];
    if (count >= most) {
        return Error{Reason::TooManyRequests,
                     fmt::format("{} has {} watches open, no more are allowed", who.user, count),
                     {},
                     5};
    }
    ++count;
    return {};
}

Status check_watch_list(const Call& call) {
    const auto& options = call.options;
    if (!options.initial_events) {
        if (options.version_match.empty()) return {};
        return invalid_object(
            "meta.k8s.io", "ListOptions", "",
            {forbidden_value("resourceVersionMatch",
                             "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")});
    }
    if (options.version_match != "NotOlderThan") {
        return invalid_object(
            "meta.k8s.io", "ListOptions", "",
            {forbidden_value("resourceVersionMatch",
                             "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")});
    }
    return {};
}

}  // namespace

size_t EventCache::Hash::operator()(const Id& id) const {
    uint64_t h = id.revision * 0x9e3779b97f4a7c15ULL + id.part * 31ULL + static_cast<uint64_t>(id.type);
    h ^= reinterpret_cast<uintptr_t>(id.kind) + (id.metadata_only ? 1 : 0);
    return h ^ (h >> 29);
}

EventCache::Line EventCache::find(const Id& id) {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(id);
    return found == lines_.end() ? nullptr : found->second;
}

void EventCache::put(const Id& id, Line line) {
    const std::lock_guard lock(mutex_);
    const size_t size = line->size();
    if (!lines_.emplace(id, std::move(line)).second) return;
    order_.push_back(id);
    bytes_ += size;
    while (order_.size() > kCachedLines || bytes_ > kCachedBytes) {
        const auto oldest = lines_.find(order_.front());
        bytes_ -= oldest->second->size();
        lines_.erase(oldest);
        order_.pop_front();
    }
}

Result<std::unique_ptr<Source>> open_watch(ApiContext& context, WatchRoom& room, const Call& call, const Form& form) {
    if (auto fits = check_watch_list(call); !fits) return fits.error();
    Filter filter = TRY(Filter::parse(*call.kind, call.options));
    const store::Revision asked = TRY(parse_version(call.options.resource_version));
    const bool initial = call.options.initial_events.value_or(asked == 0);
    store::Selector selector{call.key().kind, {}, filter.exact("metadata.name")};
    if (!call.ns.empty()) selector.ns = call.ns;
    if (!call.name.empty()) selector.name = call.name;
    store::Revision from = asked;
    std::optional<store::Listing> listing;
    if (initial) {
        from = context.store.revision();
        if (asked > from) return version_too_large(asked, from);
        listing = store::Listing{selector.kind, selector.ns, kListPage, {}, from};
    } else if (call.options.initial_events && asked == 0) {
        from = context.store.revision();
    }
    if (auto place = take_place(room, call.who); !place) return place.error();
    auto source = std::make_unique<WatchSource>(context, room, call, form, std::move(filter));
    if (listing) source->begin_with(std::move(*listing), call.options.initial_events.value_or(false));
    source->follow(std::move(selector), from);
    return std::unique_ptr<Source>(std::move(source));
}

}  // namespace berth::api
