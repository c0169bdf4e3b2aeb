#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "store/store.h"

// What nodes hold, by the equation of the reservations' specification, from the stored documents alone. It shares no
// arithmetic with the program: it knows the few forms of objects that the attacker writes.
namespace berth::attack {

using Amounts = std::map<std::string, int64_t>;  // cpu in thousandths, memory in bytes, pods

struct Holding {
    Amounts used;         // by pods and by reservations that are Available
    Amounts waiting;      // by those that wait
    Amounts allocatable;  // of the node when it was last seen
    bool exists = false;
    std::vector<int64_t> ports;  // of its pods
    // "pod p has CPU 1, which pod q has, too": what two hold, or nobody can.
    std::set<std::string> core_faults;
    int64_t over(const std::string& resource) const;
};

struct PodFacts {
    std::string node, phase;
};
struct ReservationFacts {
    std::string node, phase;
    Amounts allocatable;
    size_t users = 0;  // pods, also ended ones, that name it
    bool once = false;
    bool restricted_over = false;
    bool live() const { return phase == "Available" || phase == "Waiting"; }
};

// The whole cluster at one moment.
struct Picture {
    std::map<std::string, Holding> nodes;  // every name that a node, a pod or a reservation has named
    std::map<std::string, PodFacts> pods;  // by uid
    std::map<std::string, ReservationFacts> reservations;
};

// `before` has the sizes of nodes that are gone.
Picture look(const store::Store& store, const Picture& before);

// What a write has made worse, in a sentence; nothing when all is well. `node_written`: the node that the write was
// about, which may have shrunk. `imported`: a pod that comes from elsewhere may share a reservation that is for one.
std::string complaint(const Picture& before, const Picture& after, const std::string& node_written, bool imported);

// Whether a pod that draws from nothing has room on the node, whose pods' ports are its own.
bool has_room(const Picture& now, const std::string& node, const Json& pod);

}  // namespace berth::attack
