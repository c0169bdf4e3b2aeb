#pragma once

#include <map>
#include <string>

#include "base/json.h"

namespace berth::scenarios {

using StoryRow = std::map<std::string, std::string>;

// The object that one row of a story's table stands for; kind is the title of its first column.
// Columns  node: cpu memory pods labels taints annotations unschedulable
//          pod: namespace labels cpu memory ports node priority annotations uid controller selector tolerations
//          reservation: owner cpu memory ports labels allocateOnce policy ttl expires preAllocation nodeName
//                       annotations unschedulable priority created
//          consumer: weight parent reserved hard lendingLimit borrowingLimit request
// A row with a count stands for that many, NAME-1, NAME-2...
// Lists are written a=1,b=2; ports 80,443.
Json object_of(const std::string& kind, const StoryRow& row);

}  // namespace berth::scenarios
