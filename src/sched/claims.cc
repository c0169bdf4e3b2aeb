#include "sched/claims.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::sched {
namespace {

using model::VolumeKind;
using Said = std::optional<std::string>;

Claim find_claim(const Ask& ask, const View& ledger, const model::Volume& volume) {
    return ledger.volumes().claims().find(ask.spec->ns + "/" + volume.id);
}

bool waits_for_consumer(const View& ledger, const model::PersistentVolumeClaim& claim) {
    const auto found = claim.class_name().empty() ? nullptr : ledger.volumes().classes().find(claim.class_name());
    return found && found->wait_for_consumer;
}

// A reservation stands for a pod that does not exist yet, so nobody has made its ephemeral claims.
bool counts(const Ask& ask, const model::Volume& volume) {
    return volume.kind == VolumeKind::Claim || (volume.kind == VolumeKind::Ephemeral && ask.pod);
}

Said restrictions(const Ask& ask, const View& ledger) {
    for (const auto& volume : ask.spec->volumes) {
        if (volume.kind == VolumeKind::Claim && !find_claim(ask, ledger, volume)) {
            return fmt::format("persistentvolumeclaim \"{}\" not found", volume.id);
        }
    }
    return std::nullopt;
}

Said unusable(const Ask& ask, const model::Volume& volume, const Claim& claim) {
    const bool ephemeral = volume.kind == VolumeKind::Ephemeral;
    if (!claim) {
        return fmt::format("{}persistentvolumeclaim \"{}\"{}",
                           ephemeral ? "waiting for ephemeral volume controller to create the " : "", volume.id,
                           ephemeral ? "" : " not found");
    }
    const auto& meta = claim->meta;
    if (claim->phase == model::ClaimPhase::Lost) {
        return fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"", meta.name,
                           claim->volume);
    }
    if (meta.deleted) return fmt::format("persistentvolumeclaim \"{}\" is being deleted", meta.name);
    const model::OwnerRef* owner = meta.controller();
    if (ephemeral && (!owner || owner->uid != ask.pod->meta.uid)) {
        return fmt::format("PVC {} was not created for pod {} (pod is not owner)", meta.full_name(),
                           ask.pod->meta.full_name());
    }
    return std::nullopt;
}

Said binding(const Ask& ask, const View& ledger) {
    bool immediate = false;
    for (const auto& volume : ask.spec->volumes) {
        if (!counts(ask, volume)) continue;
        const Claim claim = find_claim(ask, ledger, volume);
        if (auto said = unusable(ask, volume, claim)) return said;
        const bool chosen_later = claim->volume.empty() && waits_for_consumer(ledger, *claim);
        immediate = immediate || (!claim->fully_bound() && !chosen_later);
    }
    if (immediate) return "pod has unbound immediate PersistentVolumeClaims";
    return std::nullopt;
}

Said zone(const Ask& ask, const View& ledger) {
    for (const auto& name : claims_of(ask, ledger).volumes) {
        if (!ledger.volumes().volumes().find(name)) return fmt::format("persistentvolume \"{}\" not found", name);
    }
    return std::nullopt;
}

}  // namespace

std::optional<Refusal> claims_refusal(const Ask& ask, const View& ledger) {
    if (ask.spec->volumes.empty()) return std::nullopt;
    if (auto said = restrictions(ask, ledger)) return Refusal{PluginId::VolumeRestrictions, {*std::move(said)}, true};
    if (auto said = binding(ask, ledger)) return Refusal{PluginId::VolumeBinding, {*std::move(said)}, true};
    if (auto said = zone(ask, ledger)) return Refusal{PluginId::VolumeZone, {*std::move(said)}, true};
    return std::nullopt;
}

AskedClaims claims_of(const Ask& ask, const View& ledger) {
    AskedClaims out;
    for (const auto& volume : ask.spec->volumes) {
        if (!counts(ask, volume)) continue;
        const Claim claim = find_claim(ask, ledger, volume);
        if (!claim) continue;
        const bool named = volume.kind == VolumeKind::Claim;
        if (named && claim->modes.has(model::AccessMode::ReadWriteOncePod)) out.once_pod.push_back(claim);
        if (named && !claim->volume.empty()) out.volumes.push_back(claim->volume);
        (claim->fully_bound() ? out.bound : out.delayed).push_back(claim);
    }
    return out;
}

bool is_matched(const Ask& ask, const ledger::Volumes::User& user) {
    if (!user.reservation) return false;
    return std::any_of(ask.credits.begin(), ask.credits.end(), [&](const auto& entry) {
        const auto& matched = entry.second.matched;
        return std::find(matched.begin(), matched.end(), user.index) != matched.end();
    });
}

}  // namespace berth::sched
