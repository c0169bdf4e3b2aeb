#pragma once

#include <boost/json/fwd.hpp>

// The headers of simdjson and Boost.JSON cost every unit that includes them seconds; headers that only name a JsonView
// or a Json include this one.
namespace simdjson::dom {
class element;
}

namespace berth {
namespace base {
using JsonView = simdjson::dom::element;
using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;
}  // namespace base
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::JsonView;
}  // namespace berth
