#include "sched/volume_plan.h"

#include <algorithm>

#include "model/volume_match.h"

namespace berth::sched {
namespace {

model::ClaimRef ref_to(const Claim& claim) {
    return {claim->meta.ns, claim->meta.name, claim->meta.uid};
}

model::Quantity size_of(const Claim& claim) {
    return claim->request.value_or(model::Quantity());
}

bool usable_on(const model::PersistentVolume& volume, const model::Labels& node) {
    return !volume.affinity || volume.affinity->matches("", node);
}

bool has_space(const View& ledger, const model::PersistentVolumeClaim& claim, const model::StorageClass& made_by,
               const model::Labels& node) {
    const auto driver = ledger.volumes().csi_drivers().find(made_by.provisioner);
    if (!claim.request || !driver || !driver->storage_capacity) return true;
    const auto all = ledger.volumes().capacities_of_class(made_by.meta.name);
    return std::any_of(all.begin(), all.end(), [&](const auto& capacity) {
        return capacity->largest && capacity->largest->value() >= claim.request->value() && capacity->topology &&
               capacity->topology->matches(node);
    });
}

}  // namespace

VolumePlanner::VolumePlanner(const AskedClaims& claims, const View& ledger) : ledger_(ledger) {
    for (const auto& claim : claims.delayed) {
        Wanted wanted{claim, ledger.volumes().classes().find(claim->class_name()), {}, {}};
        for (const auto& volume : ledger.volumes().volumes_of_class(claim->class_name())) {
            if (!model::serves(*volume, *claim)) continue;
            if (volume->is_for(claim->meta)) {
                wanted.kept.push_back(volume);
            } else if (model::is_free_for(*volume, *claim)) {
                wanted.suitable.push_back(volume);
            }
        }
        wanted_.push_back(std::move(wanted));
    }
    std::stable_sort(wanted_.begin(), wanted_.end(),
                     [](const Wanted& a, const Wanted& b) { return size_of(a.claim) < size_of(b.claim); });
}

const model::PersistentVolume* VolumePlanner::match(const Wanted& wanted, Row row,
                                                    const ledger::VolumeSteps& so_far) const {
    const auto taken = [&](const model::PersistentVolume& volume) {
        return std::any_of(so_far.prebindings.begin(), so_far.prebindings.end(),
                           [&](const auto& step) { return step.volume == volume.meta.name; });
    };
    const model::Labels& labels = ledger_.node(row).meta.labels;
    for (const auto& volume : wanted.kept) {
        if (!taken(*volume)) return usable_on(*volume, labels) ? volume.get() : nullptr;
    }
    for (const auto& volume : wanted.suitable) {
        if (usable_on(*volume, labels) && !taken(*volume)) return volume.get();
    }
    return nullptr;
}

bool VolumePlanner::provision(const Wanted& wanted, const model::Labels& labels, VolumeAnswer& answer) const {
    answer.no_volume =
        !wanted.storage_class || !wanted.storage_class->provisions() || !wanted.storage_class->reaches(labels);
    if (answer.no_volume) return false;
    answer.not_enough_space = !has_space(ledger_, *wanted.claim, *wanted.storage_class, labels);
    if (answer.not_enough_space) return false;
    answer.steps.provisionings.push_back(ref_to(wanted.claim));
    return true;
}

VolumeAnswer VolumePlanner::answer(Row row) const {
    VolumeAnswer out;
    out.steps.node = ledger_.name(row);
    std::vector<const Wanted*> to_make;
    for (const auto& wanted : wanted_) {
        const auto& selected = wanted.claim->selected_node;
        if (!selected) continue;
        if (*selected != ledger_.name(row)) {
            out.no_volume = true;
            return out;
        }
        to_make.push_back(&wanted);
    }
    for (const auto& wanted : wanted_) {
        if (wanted.claim->selected_node) continue;
        if (const auto* volume = match(wanted, row, out.steps)) {
            out.steps.prebindings.push_back({volume->meta.name, ref_to(wanted.claim)});
        } else {
            to_make.push_back(&wanted);
        }
    }
    for (const auto* wanted : to_make) {
        if (!provision(*wanted, ledger_.node(row).meta.labels, out)) return out;
    }
    return out;
}

ledger::VolumeSteps volume_steps(const Ask& ask, const View& ledger, Row row) {
    if (!ask.pod || ask.spec->volumes.empty()) return {};
    const AskedClaims claims = claims_of(ask, ledger);
    if (claims.delayed.empty()) return {};
    return VolumePlanner(claims, ledger).answer(row).steps;
}

}  // namespace berth::sched
