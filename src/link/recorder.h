#pragma once

#include <list>
#include <string>

#include "base/clock.h"
#include "base/string_map.h"
#include "link/api_client.h"

namespace berth::link {

// What an event is about.
struct Subject {
    std::string api_version = "v1";
    std::string kind;
    std::string ns;
    std::string name;
    std::string uid;
};

// Tells people what happened, as Event objects. The same thing again raises the count of the first one; each subject
// may have 25 events at once and then one more every five minutes, so that nothing floods the server. One thread.
class Recorder {
public:
    Recorder(ApiClient& server, std::string component) : server_(server), component_(std::move(component)) {}

    void warning(const Subject& subject, std::string_view reason, std::string_view message, base::Time now) {
        tell(subject, "Warning", reason, message, now);
    }
    void normal(const Subject& subject, std::string_view reason, std::string_view message, base::Time now) {
        tell(subject, "Normal", reason, message, now);
    }

private:
    struct Known {
        std::string event_name;
        std::string ns;
        int64_t count = 0;
        std::list<std::string>::iterator age;
    };
    struct Budget {
        double tokens = 0;
        base::Time filled;
    };

    void tell(const Subject& subject, std::string_view type, std::string_view reason, std::string_view message,
              base::Time now);
    bool within_budget(const Subject& subject, base::Time now);

    ApiClient& server_;
    std::string component_;
    base::StringMap<Known> known_;
    std::list<std::string> ages_;  // of known_, the newest first
    base::StringMap<Budget> budgets_;
    uint64_t serial_ = 0;
};

}  // namespace berth::link
