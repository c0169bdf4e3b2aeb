#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "api/api_context.h"
#include "api/call.h"
#include "api/filter.h"
#include "api/http.h"
#include "api/negotiate.h"

namespace berth::api {

// The newest events as they go over the wire, shared by all watches of one form; 16 MiB at most. Any thread.
class EventCache {
public:
    struct Id {
        store::Revision revision = 0;
        uint16_t part = 0;
        char type = 'A';
        bool metadata_only = false;
        const void* kind = nullptr;
        bool operator==(const Id&) const = default;
    };
    using Line = std::shared_ptr<const std::string>;
    Line find(const Id& id);
    void put(const Id& id, Line line);

private:
    struct Hash {
        size_t operator()(const Id& id) const;
    };
    std::mutex mutex_;
    std::unordered_map<Id, Line, Hash> lines_;
    std::deque<Id> order_;
    size_t bytes_ = 0;
};

// What all watches share.
struct WatchRoom {
    EventCache events;
    FacetCache facets;
    std::function<void()> wake;  // something may be there for a stream
    std::mutex mutex;
    std::map<std::string, int> per_user;
};

// Of one identity; an administrator, whose tests may need thousands, gets ten times as many.
inline constexpr int kMaxWatchesPerUser = 1'000;

// Errors that belong in the HTTP answer are returned; a version that is too old is told in the stream.
Result<std::unique_ptr<Source>> open_watch(ApiContext& context, WatchRoom& room, const Call& call, const Form& form);

}  // namespace berth::api
