#pragma once

// simdjson's header costs every unit that includes it seconds; headers that only name a JsonView include this one.
namespace simdjson::dom {
class element;
}

namespace berth {
namespace base {
using JsonView = simdjson::dom::element;
}
using base::JsonView;
}  // namespace berth
