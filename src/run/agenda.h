#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"

namespace berth::run {

// Between two turns of a driver of machines, though nothing comes.
inline constexpr base::Duration kFleetLongestWait = std::chrono::seconds(5);

// What a driver has to look at: now, since something came, or at a time. A turn costs what has changed, not what there
// is.
class Agenda {
public:
    void now(const std::string& name) { ready_.insert(name); }
    // The earliest of several times counts.
    void at(const std::string& name, base::Instant when) {
        const auto [known, added] = due_.emplace(name, when);
        if (!added && known->second <= when) return;
        if (!added) order_.erase({known->second, name});
        known->second = when;
        order_.insert({when, name});
    }
    // All that is to be looked at by then, each once.
    std::set<std::string> take(base::Instant now) {
        while (!order_.empty() && order_.begin()->first <= now) {
            due_.erase(order_.begin()->second);
            ready_.insert(order_.begin()->second);
            order_.erase(order_.begin());
        }
        return std::exchange(ready_, {});
    }
    bool ready() const { return !ready_.empty(); }
    std::optional<base::Instant> next() const {
        if (order_.empty()) return std::nullopt;
        return order_.begin()->first;
    }

private:
    std::set<std::string> ready_;
    std::map<std::string, base::Instant> due_;
    std::set<std::pair<base::Instant, std::string>> order_;
};

}  // namespace berth::run
