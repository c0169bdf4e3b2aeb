#pragma once

#include "base/result.h"
#include "machine/v1alpha1/machine.pb.h"
#include "model/iri.h"

// Between IRI's messages and the values that everybody else works with. Units that include this are few: it is slow to
// compile.
namespace berth::link {

namespace iri = ::machine::v1alpha1;

void put(const model::IriMachine& machine, iri::Machine& out);
void put(const model::IriVolume& volume, iri::Volume& out);
void put(const model::IriNetworkInterface& nic, iri::NetworkInterface& out);
// Who sends no lineage understands three states alone.
void put(const model::IriReservation& reservation, bool three_states, iri::Reservation& out);
void put(const model::IriEvent& event, event::v1alpha1::Event& out);
void put(const model::IriClassStatus& status, iri::MachineClassStatus& out);

model::IriMachine read(const iri::Machine& machine);
model::IriVolume read(const iri::Volume& volume);
model::IriNetworkInterface read(const iri::NetworkInterface& nic);
// Amounts that cannot be read are refused by their name.
Result<model::IriReservation> read(const iri::Reservation& reservation);
model::IriEvent read(const event::v1alpha1::Event& event);
model::IriClassStatus read(const iri::MachineClassStatus& status);

template <class Map>
Labels read_map(const Map& map) {
    std::vector<Labels::Entry> out;
    for (const auto& [key, value] : map) out.emplace_back(key, value);
    return Labels(std::move(out));
}
template <class Map>
void put_map(const Labels& labels, Map& out) {
    for (const auto& [key, value] : labels) out[key] = value;
}
template <class Filter>
model::IriFilter read_filter(const Filter& filter) {
    return {filter.id(), read_map(filter.label_selector())};
}

}  // namespace berth::link
