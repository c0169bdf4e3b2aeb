#pragma once

#include <functional>

#include "base/string_map.h"
#include "link/api_client.h"
#include "link/objects.h"

namespace berth::link {

// What a feed has told, so that it tells each change once and misses none: of every object its name, uid and revision.
// Pure: lists and events in, FeedEvents out.
class FeedState {
public:
    using Tell = std::function<void(FeedEvent)>;
    explicit FeedState(Tell tell) : tell_(std::move(tell)) {}

    // A list begins: everything it does not name is gone at its end. A list older than what was told means that the
    // server was set back; then all that was told goes, and comes again as it is now.
    void begin_list(uint64_t revision);
    void put(Listed object);
    // Unless something in it could not be read: then what is missing may be just that, and stays.
    void end_list(bool all_read = true);
    // The server does not know the resource: there is nothing.
    void list_nothing();

    void gone(const Listed& object);
    void bookmark(uint64_t revision) { newest_ = std::max(newest_, revision); }

    size_t size() const { return known_.size(); }

private:
    struct Known {
        std::string uid;
        uint64_t revision = 0;
        uint32_t round = 0;  // the last list that named it
    };
    void tell_gone(const std::string& name, const Known& known, uint64_t revision);

    Tell tell_;
    base::StringMap<Known> known_;
    uint64_t newest_ = 0;
    uint64_t listed_ = 0;
    uint32_t round_ = 0;
};

}  // namespace berth::link
