#pragma once

#include <memory>
#include <string>

#include "base/json_fwd.h"
#include "base/random.h"
#include "model/device.h"
#include "part_records.h"

// The Devices of random machines, as they are stored.
namespace berth::properties {

// One to four GPUs, so many to a PCIe switch, and up to two network cards with virtual functions, each on a switch.
Cards random_cards(base::Random& random, const std::string& node, int on_switch);

// A card as a Device lists it.
JsonObject document_of(const CardKey& key, const Card& card, bool healthy);

// What is read of a Device with this metadata and list.
std::shared_ptr<const model::Device> stored_device(JsonObject meta, JsonArray cards, uint64_t revision);

}  // namespace berth::properties
