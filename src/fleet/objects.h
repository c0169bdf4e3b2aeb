#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "fleet/round.h"
#include "model/hold.h"
#include "model/meta.h"

// What decisions read of the objects of a layer.
namespace berth::fleet {

inline constexpr const char* kMachines = "compute.ironcore.dev/machines";
inline constexpr const char* kMachineClasses = "compute.ironcore.dev/machineclasses";
inline constexpr const char* kMachinePools = "compute.ironcore.dev/machinepools";
inline constexpr const char* kReservations = "core.ironcore.dev/reservations";
inline constexpr const char* kDraftReservations = "compute.ironcore.dev/reservations";
inline constexpr const char* kVersion = "v1alpha1";

// Labels and annotations of the objects.
inline constexpr const char* kBroker = "machinebroker.ironcore.dev/manager";  // a broker made it, for the layer above
inline constexpr const char* kMachineBroker = "machinebroker";
inline constexpr const char* kReservationBroker = "reservationbroker";
inline constexpr const char* kBrokerLabels = "machinebroker.ironcore.dev/labels";
inline constexpr const char* kBrokerAnnotations = "machinebroker.ironcore.dev/annotations";
inline constexpr const char* kLayer = "berth.dev/layer";               // of a pool: the kubeconfig of the layer below
inline constexpr const char* kPinnedPools = "berth.dev/pinned-pools";  // a,b: only these of the layer
inline constexpr const char* kMachineFinalizer = "machinepoollet.ironcore.dev/machine";
// Of a Reservation for a Machine: it has pool_label() of each pool that it asks, so that nobody else need hear of it.
inline constexpr const char* kAsks = "berth.dev/asks";
inline constexpr const char* kByLabel = "by-label";
// Of a Reservation for a Machine, and of what a poollet asks for it: how long deciding may take, "4s".
inline constexpr const char* kWithin = "berth.dev/decide-within";
// Of a Machine that was taken back from a pool, as long as that is not done with it: label_value() of the pool.
inline constexpr const char* kLeft = "berth.dev/left";

struct Machine {
    model::Meta meta;
    std::string lineage;  // the uid of the Machine that somebody made, at the top
    uint64_t attempt = 1;
    std::string machine_class;
    std::string pool;  // "" as long as it has none
    std::string machine_id;
    int64_t generation = 0;
    std::string state;
    bool on = true;
    bool brokered = false;
    bool finalized = false;  // has our finalizer
    std::string left;        // which pool is not done with it; see kLeft
    std::vector<std::string> finalizers;
    Labels selector;
    std::vector<Toleration> tolerations;
    std::vector<std::string> pinned;
    model::Amounts own;                       // nics and localStorage, as its spec names them
    std::optional<model::Amounts> resources;  // all, as the layer above says
    std::string trouble;                      // why what it needs cannot be read; it stays where it is
};

struct Reservation {
    model::Meta meta;
    std::string resource;  // which of both kinds
    bool brokered = false;
    model::HoldAsk ask;
    Asked asked;
    bool labelled = false;    // see kAsks
    bool has_status = false;  // status.pools is there
    bool has_answer = false;  // status is there, with or without them

    bool for_machine() const { return asked.for_machine; }
};

struct MachineClass {
    model::Meta meta;
    model::Amounts capabilities;
};

// Trouble is a sentence about the member that cannot be read.
Result<Machine> read_machine(const Json& object);
Result<Reservation> read_reservation(const Json& object);
Result<MachineClass> read_machine_class(const Json& object);
Result<Pool> read_pool(const Json& object);

model::Meta meta_of(const Json& object);
Result<model::Amounts> read_amounts(const Json* object);
Labels read_labels(const Json* object);
std::vector<Toleration> read_tolerations(const Json* list);

// What a pool has said, or Released of one that has accepted and was then left out.
model::HoldState state_at(const Reservation& reservation, const PoolEntry& entry);
// {"name":..,"state":..,...}: an entry of status.pools.
JsonObject entry_document(const PoolEntry& entry);
// The members of a status that tell the answer of a whole layer.
JsonObject answer_document(const model::HoldAnswer& answer);
// What a Reservation of that Machine asks for, before anybody is asked.
Asked asked_for(const Machine& machine);
// The Reservation of a Machine, in the wave that was chosen for it.
Json reservation_document(const std::string& name, const Machine& machine, const model::Amounts& resources,
                          const std::vector<std::string>& pools, base::Duration within);
// A merge patch: these are the pools that it asks from now on.
Json asking(const Reservation& reservation, const std::vector<std::string>& pools);

// What a machine needs: what its layer above says; else its class, network interfaces and local disks.
model::Amounts needs(const Machine& machine, const MachineClass& machine_class);

// A name for what is made of something else: the same each time, and short.
std::string short_hash(std::string_view text);
// Text that a label's value may have; longer ones are told by their hash.
std::string label_value(const std::string& text);
// "pool.berth.dev/a"
std::string pool_label(const std::string& pool);

}  // namespace berth::fleet
