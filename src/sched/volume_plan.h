#pragma once

#include "sched/ask.h"
#include "sched/claims.h"

namespace berth::sched {

// How the claims that are still unbound would be served on one node, or why they cannot be.
struct VolumeAnswer {
    ledger::VolumeSteps steps;
    bool no_volume = false;  // no volume to bind, and none can be made there
    bool not_enough_space = false;
};

// Chooses volumes for an ask's unbound claims, node by node: a volume that is kept for the claim, else the smallest
// that fits, else one to be made. E.g. claims of 2Gi and 1Gi, volumes of 1Gi, 3Gi and 5Gi: 1Gi -> 1Gi, 2Gi -> 3Gi.
class VolumePlanner {
public:
    VolumePlanner(const AskedClaims& claims, const View& ledger);
    VolumeAnswer answer(Row row) const;

private:
    using Volume = std::shared_ptr<const model::PersistentVolume>;
    struct Wanted {
        Claim claim;
        std::shared_ptr<const model::StorageClass> storage_class;
        std::vector<Volume> kept;      // for this claim already
        std::vector<Volume> suitable;  // on some node; smallest first
    };
    const model::PersistentVolume* match(const Wanted& wanted, Row row, const ledger::VolumeSteps& so_far) const;
    // False, with the reason in answer, when no volume can be made for a node with these labels.
    bool provision(const Wanted& wanted, const model::Labels& labels, VolumeAnswer& answer) const;

    const View& ledger_;
    std::vector<Wanted> wanted_;  // smallest request first
};

// What must be written, and waited for, before the ask's pod can be bound to the row. Empty for reservations: reserving
// never binds or makes a volume.
ledger::VolumeSteps volume_steps(const Ask& ask, const View& ledger, Row row);

}  // namespace berth::sched
