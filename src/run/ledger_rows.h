#pragma once

#include <optional>

#include "fleet/hold_table.h"
#include "model/iri.h"
#include "run/fleet_provider.h"

// What of a provider's ledger is kept about one lineage, as a row of text.
namespace berth::run {

struct LedgerParts {
    std::optional<fleet::HoldTable::Hold> hold;
    std::optional<fleet::HoldTable::Machine> machine;
    std::optional<fleet::HoldTable::Fence> fence;
    std::optional<model::IriMachine> record;
    std::optional<model::IriMeta> reservation;
};

// Leases are kept as what was left of them: the time in which nobody ran does not count.
LedgerRow ledger_row(const std::string& lineage, const LedgerParts& parts, base::Instant now);
Result<LedgerParts> read_ledger_row(const LedgerRow& row, base::Instant now);

}  // namespace berth::run
