#pragma once

#include <absl/container/inlined_vector.h>

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/ids.h"
#include "ledger/pod_groups.h"
#include "ledger/ports.h"
#include "ledger/text.h"
#include "ledger/uid.h"
#include "model/allocated.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/reservation_rules.h"
#include "model/which.h"

namespace berth::ledger {

using model::ResourceId;
using model::Resources;

// One resource over all rows, in the resource's unit. used may exceed allocatable (the node shrank, somebody else
// placed a pod): then nothing is placed there.
struct Column {
    std::vector<int64_t> allocatable;
    std::vector<int64_t> used;
    size_t having = 0;  // rows where there is some
};

// A part of a pod's request that is drawn from a reservation.
struct Charge {
    ReservationIndex reservation = kNone;
    Resources amount;
    bool operator==(const Charge&) const = default;
};

// Which ones of a node's parts somebody has; nullptr: none.
using WhichPtr = std::shared_ptr<const model::Which>;

using Charges = absl::InlinedVector<Charge, 1>;

// What a pod that draws from reservations carries, whether or not they are known here.
struct Linked {
    model::Links links;
    std::vector<model::OwnerRef> owners;  // of the pod
    std::string fault;                    // the links cannot be read: nobody knows what the pod draws from
};

// A pod without a start time: it began after all that have one.
inline constexpr base::Time kNotStarted{std::numeric_limits<int64_t>::max()};

// There may be a million: names are packed, the namespace is the spec's, and equal specs are one.
struct PodEntry {
    Uid uid;
    Text name;
    std::shared_ptr<const model::PodSpec> spec;
    std::vector<Charge> parts;  // charged to reservations that hold room on its row; the first is the nominated one
    std::unique_ptr<Linked> linked;  // nullptr for almost every pod
    WhichPtr which;                  // which cores; nullptr for almost every pod
    Row row = kNoRow;                // kNoRow: bound to a node that is not known (yet)
    uint32_t place = 0;              // among its row's pods
    int32_t priority = 0;
    bool assumed = false;            // placed by us, not yet seen bound
    bool terminating = false;        // has a deletionTimestamp
    bool preempted = false;          // terminating because a scheduler evicted it for another pod
    bool lifted = false;             // taken out of its row for a while
    bool implied = false;            // its links are what its charges say, and not written out yet
    Waits waits = Waits::No;         // among the spaces, when it is given back
    GroupId group = kNone;           // among the terms, while it is counted there
    ReservationIndex payer = kNone;  // it is charged the whole request; then there are no parts
    base::Time created;
    base::Time started;  // kNotStarted before that

    std::string_view ns() const { return spec->ns; }
    bool charged() const { return payer != kNone || !parts.empty(); }
    // Calls f(reservation, amount) for each reservation of its row that it is charged to, the nominated one first.
    template <class F>
    void each_charge(F f) const {
        if (payer != kNone) return f(payer, spec->requests);
        for (const Charge& part : parts) f(part.reservation, part.amount);
    }
    Charges charges() const;
    void set_charges(const Charges& charges);
};

// What of its room a reservation has, as far as this ledger has decided or seen.
enum class Holding : uint8_t { None, Waiting, Available };

struct ReservationEntry {
    std::shared_ptr<const model::Reservation> object;
    Row row = kNoRow;  // where it holds; kNoRow while it holds nothing, or its node is not known
    Holding holding = Holding::None;
    model::Closed closed = model::Closed::NotAvailable;
    bool assumed = false;  // placed by us, not yet seen in its status
    bool used_up = false;  // allocateOnce, and an owner was bound: it ends with the next status written
    bool ended = false;    // its time is over: it holds its room until that is stored, and nobody draws from it
    // Said by the object, and kept at hand: whoever places an owner need not read the object.
    bool once = true;
    bool holds_back = false;
    model::Closed closed_by_object = model::Closed::No;
    model::AllocatePolicy policy = model::AllocatePolicy::Default;
    std::shared_ptr<const model::PodSpec> spec;
    int64_t scoring_cpu = 0;  // the spec's
    int64_t scoring_memory = 0;

    absl::InlinedVector<PodIndex, 2> owners;  // pods charged to it
    Resources allocatable;                    // what it holds on its row
    Resources charged;                        // whole requests of its owners (for joint draws: the drawn parts)
    int64_t scored_cpu = 0;                   // what it adds to the sums that scores read
    int64_t scored_memory = 0;
    std::vector<model::HostPort> ports;  // of those it names, the ones that no pod has taken

    WhichPtr which;      // that it holds on its row
    WhichPtr recorded;   // that it was placed with
    Resources reserved;  // what it was placed with; pods = 1
    std::string node;    // where it was placed

    bool holds_room() const { return holding != Holding::None; }
    bool waiting() const { return holding == Holding::Waiting; }
    bool open() const { return closed == model::Closed::No; }
};

// What nobody draws of it; without the count of pods.
Resources undrawn(const ReservationEntry& reservation);

struct NodeEntry {
    std::shared_ptr<const model::Node> node;  // nullptr: the row is free
    std::vector<PodIndex> pods;
    std::vector<ReservationIndex> reservations;  // that hold room here
    uint64_t reservations_epoch = 0;             // another one whenever they, or their objects, are others
    Ports ports;
    uint32_t unreadable = 0;  // pods whose links cannot be read: no reservation of the row may be drawn from
    bool saturated = false;   // a sum met the end of int64: this row is recomputed, not adjusted
};

}  // namespace berth::ledger
