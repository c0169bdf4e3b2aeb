#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/record.h"

namespace berth::store {

class Store;
struct Watcher;

struct Selector {
    std::string kind;
    std::optional<std::string> ns = {};
    std::optional<std::string> name = {};
    bool matches(const Key&) const;
};

// A cursor over the events of one kind. Events come in order, each once, none left out, and those of one transaction
// together. Belongs to one thread at a time and must go before its Store.
class Watch {
public:
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // The next events: at least one transaction's when there is any, and then no more than `max` unless a transaction
    // is larger. Empty: nothing new. Expired (410) when the history no longer reaches back to where this cursor stands;
    // it stays so.
    Result<std::vector<EventPtr>> poll(size_t max);

    // Everything up to here was handed out by poll(): what a bookmark may say.
    Revision progress() const;

private:
    friend class Store;
    Watch(Store& store, std::shared_ptr<Watcher> watcher);

    Store& store_;
    std::shared_ptr<Watcher> watcher_;
};

}  // namespace berth::store
