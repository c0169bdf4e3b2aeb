#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/string_map.h"

namespace berth::control {

// How old things are, when wall clocks cannot be trusted: as in ledger/ends.h, a look being a pass.
class Ages {
public:
    // Begins a pass. Things not asked about during a pass are forgotten at its end.
    void begin(base::Time wall, base::Instant now);
    base::Duration of(std::string_view thing, base::Time since);
    void end();

private:
    struct Seen {
        base::Instant at;
        base::Duration age;
        bool asked = false;
    };
    base::StringMap<Seen> seen_;
    base::Time wall_;
    base::Instant now_;
    base::Instant before_;
    bool first_ = true;
};

}  // namespace berth::control
