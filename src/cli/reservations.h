#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "model/reservation.h"

namespace berth::cli {

// How `berth reserve extend` shall move the end: one of them.
struct Extension {
    std::optional<base::Duration> by = {};   // after the present end
    std::optional<base::Duration> ttl = {};  // after the creation; 0: never
    std::optional<base::Time> expires = {};
};
// The merge patch; an Error says why it cannot be, or would be no extension.
Result<Json> extension_of(const model::Reservation& reservation, const Extension& wanted, base::Time now);

// NAME, PHASE, NODE, RESERVED, DRAWN, IDLE, FOR, ENDS.
std::vector<std::string> reservation_row(const model::Reservation& reservation, base::Time now);

// berth reserve list|extend|release: what was made by `berth reserve`, or by whomever.
int reserve_list(std::vector<std::string> words);
int reserve_extend(std::vector<std::string> words);
int reserve_release(std::vector<std::string> words);

}  // namespace berth::cli
