#pragma once

#include <memory>
#include <string>

#include "base/random.h"
#include "ledger/ledger.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/reservation.h"

namespace berth::properties {

// Nodes and pods from a small world of labels, taints, ports and images, so that they often meet.
model::Node random_node(base::Random& random, std::string name);
std::shared_ptr<const model::PodSpec> random_spec(base::Random& random, size_t nodes);
// The same with spread constraints and pod (anti-)affinity.
std::shared_ptr<const model::PodSpec> random_near_spec(base::Random& random, size_t nodes);
// The same with claims, disks and ports.
std::shared_ptr<const model::PodSpec> random_holding_spec(base::Random& random, size_t nodes);
std::string node_name(size_t number);

// Who the pod is to reservations: labels, a controller, wishes; its spec must be there.
void add_identity(base::Random& random, model::Pod& pod);
// Available on one of the nodes, for some of the pods of this world.
model::Reservation random_reservation(base::Random& random, size_t number, size_t nodes);
// Claims that pods name, the volumes they are bound to, and how many of them a node takes.
void put_volumes(base::Random& random, size_t nodes, ledger::Ledger& ledger);

// Another world, of nodes with few slots and little room, and no two equal reservations. Joint: all of the default
// policy and mostly of cpu, so that pods often draw from several.
model::Node tight_node(base::Random& random, std::string name);
std::shared_ptr<const model::PodSpec> tight_spec(base::Random& random, bool joint);
// Not placed yet.
model::Reservation tight_reservation(base::Random& random, size_t number, bool joint);

}  // namespace berth::properties
