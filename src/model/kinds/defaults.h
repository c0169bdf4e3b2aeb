#pragma once

#include "base/json.h"
#include "model/kinds/kinds.h"

namespace berth::model {

// Puts Kubernetes' defaults into an object that check_fields has passed (defaults.tbl). Doing it twice changes nothing
// more. Left to the door, because they need more than the object: service accounts, priorities, the claim's storage
// class, cluster IPs, a device taint's timeAdded.
// `only`: see check_fields().
void apply_defaults(Json& object, const Kind& kind, const JsonObject* only = nullptr);

}  // namespace berth::model
