#pragma once

#include "base/json.h"
#include "model/kinds/kinds.h"

namespace berth::model {

// Between a kind and the kind it is kept under (Kind::stored_kind): events.k8s.io/v1 and core/v1 events are two
// spellings of one object, autoscaling/v1 a narrow view of autoscaling/v2. What a view cannot say travels in
// annotations, so nothing is lost on the way there and back. Other kinds come back as they are.
Json to_stored(const Kind& kind, Json object);
Json from_stored(const Kind& kind, Json object);

}  // namespace berth::model
