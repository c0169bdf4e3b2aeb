#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "fleet/objects.h"
#include "model/iri.h"

// Between the objects of a layer and what IRI carries to the next one.
namespace berth::fleet {

// A Machine as its poollet asks for it. `needs` travel as an annotation, so that the layers below need no class.
model::IriMachine iri_machine(const Json& document, const Machine& machine, const model::Amounts& needs);

// Where a broker writes, and what it adds.
struct BrokerPlace {
    std::string ns = "default";
    std::string pool = {};  // pinned to this pool of its layer
    Labels selector = {};   // of pools
};

// What a broker writes for the layer above, and how it is read back.
Json brokered_machine(const model::IriMachine& machine, const BrokerPlace& place);
Json brokered_reservation(const model::IriReservation& reservation, const BrokerPlace& place);
model::IriMachine iri_of(const Machine& machine, const Json& document);
model::IriReservation iri_of(const Reservation& reservation);

// The secret that a Machine names for its first start, and what is in it. Trouble is a sentence.
struct IgnitionRef {
    std::string name;
    std::string key;
};
std::optional<IgnitionRef> ignition_ref(const Json& machine);
Result<std::string> ignition_in(const Json& secret, const IgnitionRef& ref);
// The same for the Machine that a broker makes.
Json brokered_ignition(const model::IriMachine& machine, const BrokerPlace& place);

// One difference between what a Machine shall be and what is below; each is one call.
struct MachineUpdate {
    enum class Do : uint8_t { Power, AttachVolume, UpdateVolume, DetachVolume, AttachInterface, DetachInterface };
    Do what = Do::Power;
    bool on = true;
    model::IriVolume volume = {};
    model::IriNetworkInterface network_interface = {};
};
std::optional<MachineUpdate> next_update(const model::IriMachine& wanted, const model::IriMachine& below);
void apply(const MachineUpdate& update, model::IriMachine& below);
// As spec.volumes and spec.networkInterfaces have them.
Json volume_document(const model::IriVolume& volume);
Json interface_document(const model::IriNetworkInterface& nic);

// The members of a Machine's status that are not as what is below says; empty: none.
JsonObject status_changes(const Json& document, const model::IriMachine& below, const std::string& machine_id,
                          bool settled);

// The lineage that a machine or reservation of IRI names: our label, or IronCore's uid; "" is neither.
std::string lineage_of(const model::IriMeta& meta, std::string_view uid_label);
inline constexpr const char* kMachineUid = "machinepoollet.ironcore.dev/machine-uid";
inline constexpr const char* kReservationUid = "machinepoollet.ironcore.dev/reservation-uid";

// The names of what a broker makes: the same for the same lineage, so that whatever is asked twice is there once.
std::string brokered_machine_name(const std::string& lineage);
std::string brokered_reservation_name(const std::string& lineage, uint64_t attempt);

}  // namespace berth::fleet
