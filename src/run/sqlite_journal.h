#pragma once

#include <memory>
#include <string>

#include "run/fleet_provider.h"

namespace berth::run {

// A provider's ledger in DIR/ledger.db. Whoever opened it holds the directory; a second process is refused.
struct OpenedJournal {
    std::unique_ptr<FleetJournal> journal;
    std::string epoch;  // made with the file: another one means that what was promised is forgotten
};
Result<OpenedJournal> open_fleet_journal(const std::string& dir, const std::string& fresh_epoch);

}  // namespace berth::run
