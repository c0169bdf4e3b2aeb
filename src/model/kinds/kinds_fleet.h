#pragma once

#include "model/kinds/kinds.h"

namespace berth::model {

// The built-in kinds, and behind them those of layered pools (kinds_fleet.tbl). Safe from any thread.
const Kinds& kinds_with_fleet();

}  // namespace berth::model
