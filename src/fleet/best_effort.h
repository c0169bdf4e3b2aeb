#pragma once

#include <string>
#include <vector>

#include "fleet/hold_table.h"
#include "model/iri.h"

namespace berth::fleet {

// The ledger of a pool whose runtime knows no reservations, kept by its poollet: machines of a class, and holds for
// more of them, are never more than the runtime has said that there may be. It forgets with its process, others may
// take the room, and nothing but classes is counted: best effort, as its answers say.
class BestEffort {
public:
    BestEffort(const std::vector<model::IriClassStatus>& classes, Instant now);

    void resize(const std::vector<model::IriClassStatus>& classes, Instant now);
    // The same answer for the same question; its lease begins anew.
    HoldAnswer hold(const HoldAsk& ask, bool commits, Instant now);
    void release(const std::string& lineage, Instant now) { table_.release(lineage, now); }
    void place(const std::string& lineage, uint64_t attempt, const std::string& machine_class, Instant now);
    void remove(const std::string& lineage, Instant now) { table_.remove(lineage, now); }

private:
    HoldTable table_;
};

}  // namespace berth::fleet
