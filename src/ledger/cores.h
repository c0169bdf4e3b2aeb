#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"
#include "ledger/cpu_bits.h"
#include "ledger/ids.h"
#include "model/node_topology.h"
#include "model/which.h"

namespace berth::ledger {

// A machine, laid out once: which CPUs share a core and a NUMA node.
struct CoreLayout {
    struct Core {
        CpuBits cpus;
        int32_t threads = 0;
        int32_t numa = 0;  // its place in `numas`
    };
    struct Numa {
        int32_t id = 0;
        int32_t socket = 0;
        CpuBits cpus;
    };
    std::vector<Core> cores;  // by socket, NUMA node, core
    std::vector<Numa> numas;  // by id
    CpuBits all;
    int32_t threads = 1;  // of a core; the most there are
};

struct NumaUse {
    model::Resources total;  // a resource that it does not name is not counted by NUMA node
    model::Resources used;
    bool single = false;  // somebody has a part of this one alone
    bool shared = false;  // somebody has parts of this and of others
};

// Who has which cores of a node, and how much of each NUMA node.
//   free = all - reserved (annotations, kubelet, system) - pods' - reservations'
// A pod that draws from a reservation may have cores of it: they are the pod's, and the reservation has the others
// left. Of an amount on a NUMA node its reservations give what they have left there, as of a device (NodeDevices).
// Computed from its members whenever one of them comes or goes, never adjusted.
struct NodeCores {
    struct Member {
        bool reservation = false;
        uint32_t index = 0;  // PodIndex or ReservationIndex
        std::shared_ptr<const model::Which> which;
        model::CpuExclusive exclusive = model::CpuExclusive::None;
        std::vector<ReservationIndex> from;  // that pay for it
        std::string order = {};              // its uid, where several pay
    };
    enum class Fault : uint8_t {
        None,
        Topology,    // it cannot be read
        Rules,       // nor can what the Node says of them
        Unreadable,  // a record
        Beyond,      // a record names a CPU that the machine does not have
        Twice,       // two records name one CPU
    };

    std::shared_ptr<const model::NodeTopology> object;  // nullptr: not known
    std::shared_ptr<const CoreLayout> layout;           // nullptr: there are no CPUs to give
    model::NodeCoreRules rules;
    model::CpuIds reserved;  // by the Node itself
    std::vector<Member> members;

    Fault fault = Fault::None;  // other than None: nobody is given cores here
    int32_t fault_cpu = -1;
    size_t fault_member = 0;
    CpuBits kept;     // never given
    CpuBits by_pods;  // taken
    CpuBits free;
    int64_t free_cpus = 0;
    int64_t whole = 0;                     // of these, on cores that are wholly free, and have all their threads
    int64_t started = 0;                   // cores with any free
    CpuBits alone_on_core, alone_on_numa;  // cores and NUMA nodes of those who want no others with the same wish there
    std::vector<NumaUse> numa;             // as the layout's
    int64_t bound_milli = 0;               // cpu of those with cores of their own, reservations' remainders too

    void recompute();
    // What of a reservation's cores no pod has.
    CpuBits remaining(ReservationIndex index) const;
    // What of a reservation's amounts on a NUMA node its owners have not.
    int64_t remaining(ReservationIndex index, size_t numa, ResourceId id) const;
    // Plain pods have to be looked at here, too.
    bool demanding() const;

private:
    void count(const Member& member);
    struct Left {
        ReservationIndex reservation;
        std::vector<model::Resources> on;  // beside `numa`
    };
    void count_numa();
    void take(const Member& pod, size_t place);
    void find_faults();

    std::vector<Left> left_;
};

// The cores of all nodes. Events come in any order.
class Cores {
public:
    // Topologies, by their nodes' names. Whoever changes one shows the node again.
    void put(std::shared_ptr<const model::NodeTopology> topology);
    bool remove(std::string_view node, std::string_view uid);  // false: it is another one, or unknown
    // The node is a row now, or has changed.
    void see(Row row, const model::Node& node);
    void forget(Row row);
    void enter(Row row, NodeCores::Member member);
    void leave(Row row, bool reservation, uint32_t index);

    // nullptr: nothing is known of its cores, and nobody has any.
    const NodeCores* at(Row row) const { return row < rows_.size() ? rows_[row].get() : nullptr; }
    // Whether any row asks something of pods that ask for no cores.
    bool any_demanding() const { return demanding_ > 0; }

private:
    struct Known {
        std::shared_ptr<const model::NodeTopology> object;
        std::shared_ptr<const CoreLayout> layout;
    };
    NodeCores& made(Row row);

    std::vector<std::unique_ptr<NodeCores>> rows_;
    base::StringMap<Known> known_;  // by node
    size_t demanding_ = 0;
};

}  // namespace berth::ledger
