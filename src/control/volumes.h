#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "control/reconciler.h"
#include "model/storage.h"

// Claims and volumes find each other, and volumes are made where nobody else makes them.
namespace berth::control {

// Volumes of classes with this provisioner are made by the reconciler below: objects without a disk behind them.
inline constexpr std::string_view kSimulatedProvisioner = "berth.dev/simulated";

// The claim's half: it takes the volume that is kept for it, or, when its class does not wait for a consumer, the
// smallest that fits; then it is Bound, or Lost when its volume is.
std::unique_ptr<Reconciler> claim_binder_reconciler();
// The volume's half: its phase, and what becomes of it when its claim is gone.
std::unique_ptr<Reconciler> volume_binder_reconciler();
// Makes volumes for claims of its classes: at once, or when a node was selected.
std::unique_ptr<Reconciler> simulated_provisioner_reconciler();

// Makes the claims of pods with ephemeral volumes; they go with the pod.
std::unique_ptr<Reconciler> ephemeral_volumes_reconciler();

std::optional<model::PersistentVolume> volume_of(const Object& object);
std::optional<model::PersistentVolumeClaim> claim_of(const Object& object);
std::optional<model::StorageClass> class_of(const Objects& objects, std::string_view name);

// The volume that an unbound claim takes: one that is kept for it; else, when its class does not wait for a consumer,
// the smallest that suits. nullptr: none.
ObjectPtr best_volume(const model::PersistentVolumeClaim& claim, const Objects& objects);

// A patch that holds only for the object as it was seen.
Write patch_seen(std::string resource, const Object& object, JsonObject metadata, JsonObject spec);

}  // namespace berth::control
