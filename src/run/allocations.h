#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/meta.h"
#include "model/write.h"
#include "share/reclaiming.h"

namespace berth::run {

// What shall be published of one consumer.
struct Published {
    const share::Account& account;
    const share::Overuse* standing = nullptr;  // null: nobody wants anything of it, and it has no more than is its own
    std::vector<share::Condition> conditions;
    Resources capacity;     // an infinite consumer is shown as having no more than that
    std::string owner_uid;  // of its Consumer; empty: it has none yet
};

// A stored Allocation.
struct StoredAllocation {
    model::Meta meta;
    Json document;
};

// What brings the Allocation up to date; nothing when it says so already. Amounts that differ by a hundredth or less
// are no difference, unless `exact`.
model::Writes allocation_writes(const Published& wanted, const StoredAllocation* stored, base::Time now, bool exact);

// What a former leader knew: since when a consumer is overused, and until when its own controllers may choose.
struct Remembered {
    std::optional<base::Time> overused_since, deadline;
};
Remembered remembered(const Json& allocation);

}  // namespace berth::run
