#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "model/meta.h"
#include "model/resources.h"
#include "model/taints.h"

namespace berth::model {

struct NodeImage {
    std::vector<std::string> names;
    int64_t size = 0;
    bool operator==(const NodeImage&) const = default;
};

struct Node {
    Meta meta;
    Resources capacity;     // of the machine
    Resources allocatable;  // as the kubelet reports it; what a reservation annotation holds back is not taken off here
    std::vector<Taint> taints;
    std::vector<NodeImage> images;
    bool unschedulable = false;
    std::optional<base::Time> not_ready;  // since then; the epoch where that is not said
    std::string complaint;                // the message of the condition BerthReservationInvalid, while it is True
};

Result<Node> read_node(JsonView object);

}  // namespace berth::model
