#pragma once

#include "model/resources.h"

namespace berth::model {

// Pods' authors may use up this many names, so that one of a node or of ours is still known when it comes. What such
// pods ask for no node has.
inline constexpr size_t kMaxAskedNames = kMaxResourceNames - 10000;

// One list of amounts names so many at most: each is looked for among the others, and a node's are kept for every node.
inline constexpr size_t kMostNamed = 256;

// As intern_resource(), for names that anybody may have made up.
Result<ResourceId> intern_asked_resource(std::string_view name);

}  // namespace berth::model
