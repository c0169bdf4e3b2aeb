#pragma once

#include <memory>
#include <string>

#include "base/random.h"
#include "model/node.h"
#include "model/pod.h"

namespace berth::properties {

// Nodes and pods from a small world of labels, taints, ports and images, so that they often meet.
model::Node random_node(base::Random& random, std::string name);
std::shared_ptr<const model::PodSpec> random_spec(base::Random& random, size_t nodes);
// The same with spread constraints and pod (anti-)affinity.
std::shared_ptr<const model::PodSpec> random_near_spec(base::Random& random, size_t nodes);
std::string node_name(size_t number);

}  // namespace berth::properties
