#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/string_map.h"

namespace berth::control {

// How old things are, when wall clocks cannot be trusted: as in ledger/ends.h.
class Ages {
public:
    // It has been so since then; what was said first counts.
    void put(std::string_view thing, base::Time since);
    void forget(std::string_view thing);
    void look(base::Time wall, base::Instant now);
    // As of the last look; none: it was not known by then.
    std::optional<base::Duration> of(std::string_view thing) const;

private:
    struct Life {
        base::Time since;
        std::optional<base::Instant> begin;  // none before the first look at it
    };
    base::StringMap<Life> lives_;
    std::vector<std::string> fresh_;  // not yet looked at; some may be gone
    std::optional<base::Instant> looked_;
};

}  // namespace berth::control
