#include "model/volume_match.h"

namespace berth::model {

bool serves(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
    return volume.capacity >= claim.request.value_or(Quantity()) && volume.block == claim.block &&
           volume.attributes_class == claim.attributes_class && !volume.meta.deleted;
}

bool is_free_for(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
    return !volume.claim && volume.phase == VolumePhase::Available &&
           (!claim.selector || claim.selector->matches(volume.meta.labels)) && volume.modes.contains(claim.modes);
}

}  // namespace berth::model
