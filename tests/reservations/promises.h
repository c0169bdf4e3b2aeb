#pragma once

#include <string>
#include <vector>

#include "stage.h"

namespace berth::reservations {

// What must hold of ports and volumes, told from the stored objects and what is in flight alone; the ledger is not
// asked. A sentence for each promise that is broken.
std::vector<std::string> broken_promises(const Stage& stage);

}  // namespace berth::reservations
