#pragma once

#include <string>

#include "ledger/ledger.h"

namespace berth::run {

// The phase of every reservation, and what it holds and has given, with Koordinator's names.
void append_reservation_metrics(const ledger::View& ledger, std::string& out);

}  // namespace berth::run
