#include "ledger/volumes.h"

#include <algorithm>

#include "base/check.h"

namespace berth::ledger {
namespace {

template <class Set>
void erase_from(base::StringMap<Set>& index, const std::string& key, const typename Set::key_type& value) {
    const auto found = index.find(key);
    if (found == index.end()) return;
    found->second.erase(value);
    if (found->second.empty()) index.erase(found);
}

std::string claim_key(const model::PodSpec& spec, const model::Volume& volume) {
    return spec.ns + "/" + volume.id;
}

Volumes::Attachable attachable_of(std::string_view driver, std::string_view handle) {
    return {std::string(driver), std::string(driver) + "/" + std::string(handle)};
}

// The in-tree plugin of an inline disk that a CSI driver serves today; empty for other volumes.
std::string_view in_tree_plugin(model::VolumeKind kind) {
    switch (kind) {
        case model::VolumeKind::AwsEbs:
            return "kubernetes.io/aws-ebs";
        case model::VolumeKind::GcePd:
            return "kubernetes.io/gce-pd";
        case model::VolumeKind::AzureDisk:
            return "kubernetes.io/azure-disk";
        case model::VolumeKind::Cinder:
            return "kubernetes.io/cinder";
        default:
            return "";
    }
}

}  // namespace

// ---- objects

void Volumes::index(const std::string& name) {
    const auto volume = volumes_.find(name);
    if (volume) by_class_[volume->storage_class].insert({volume->capacity, name});
}

void Volumes::unindex(const std::string& name) {
    const auto volume = volumes_.find(name);
    if (volume) erase_from(by_class_, volume->storage_class, {volume->capacity, name});
}

void Volumes::put(std::shared_ptr<const model::PersistentVolume> volume) {
    const std::string name = volume->meta.name;
    unindex(name);
    volumes_.put(std::move(volume));
    index(name);
}

void Volumes::remove_volume(std::string_view name, std::string_view uid) {
    const std::string key(name);
    unindex(key);
    volumes_.remove(key, uid);
    index(key);
}

void Volumes::put(std::shared_ptr<const model::CsiStorageCapacity> object) {
    const std::string name = object->meta.full_name();
    if (const auto old = capacities_.find(name)) erase_from(capacities_by_class_, old->storage_class, name);
    capacities_.put(std::move(object));
    capacities_by_class_[capacities_.find(name)->storage_class].insert(name);
}

void Volumes::remove_capacity(std::string_view full_name, std::string_view uid) {
    const auto old = capacities_.find(full_name);
    if (!old || !capacities_.remove(full_name, uid)) return;
    erase_from(capacities_by_class_, old->storage_class, std::string(full_name));
}

void Volumes::put(std::shared_ptr<const model::VolumeAttachment> object) {
    const std::string name = object->meta.name;
    if (const auto old = attachments_.find(name)) erase_from(attachments_by_node_, old->node, name);
    attachments_.put(std::move(object));
    attachments_by_node_[attachments_.find(name)->node].insert(name);
}

void Volumes::remove_attachment(std::string_view name, std::string_view uid) {
    const auto old = attachments_.find(name);
    if (!old || !attachments_.remove(name, uid)) return;
    erase_from(attachments_by_node_, old->node, std::string(name));
}

// ---- decisions

void Volumes::assume(const VolumeSteps& steps) {
    for (const auto& step : steps.prebindings) {
        const auto volume = volumes_.find(step.volume);
        if (!volume) continue;
        auto bound = std::make_shared<model::PersistentVolume>(*volume);
        bound->claim = step.claim;
        volumes_.assume(std::move(bound));
    }
    for (const auto& ref : steps.provisionings) {
        const auto claim = claims_.find(ref.ns + "/" + ref.name);
        if (!claim) continue;
        auto chosen = std::make_shared<model::PersistentVolumeClaim>(*claim);
        chosen->selected_node = steps.node;
        claims_.assume(std::move(chosen));
    }
}

void Volumes::give_back(const VolumeSteps& steps) {
    for (const auto& step : steps.prebindings) volumes_.drop_assumed(step.volume);
    for (const auto& ref : steps.provisionings) claims_.drop_assumed(ref.ns + "/" + ref.name);
}

// ---- users

void Volumes::use(User user, const model::PodSpec& spec) {
    for (const auto& volume : spec.volumes) {
        if (volume.kind == model::VolumeKind::Claim) users_[claim_key(spec, volume)].push_back(user);
    }
}

void Volumes::unuse(User user, const model::PodSpec& spec) {
    for (const auto& volume : spec.volumes) {
        if (volume.kind != model::VolumeKind::Claim) continue;
        const auto entry = users_.find(claim_key(spec, volume));
        CHECK(entry != users_.end());
        entry->second.erase(std::find(entry->second.begin(), entry->second.end(), user));
        if (entry->second.empty()) users_.erase(entry);
    }
}

void Volumes::enter(User user, uint32_t row, const std::shared_ptr<const model::PodSpec>& spec) {
    if (spec->volumes.empty()) return;
    use(user, *spec);
    if (row == kNoRow) {
        CHECK(adrift_.emplace(std::pair(user.reservation, user.index), spec).second);
        return;
    }
    if (placed_.size() <= row) placed_.resize(row + 1);
    placed_[row].push_back({user, spec});
}

// What entered leaves, even if the object's template has changed since.
void Volumes::leave(User user, uint32_t row) {
    std::shared_ptr<const model::PodSpec> spec;
    if (row == kNoRow) {
        const auto found = adrift_.find({user.reservation, user.index});
        if (found == adrift_.end()) return;
        spec = std::move(found->second);
        adrift_.erase(found);
    } else {
        if (row >= placed_.size()) return;
        auto& here = placed_[row];
        const auto found = std::find_if(here.begin(), here.end(), [&](const Placed& p) { return p.user == user; });
        if (found == here.end()) return;
        spec = std::move(found->spec);
        here.erase(found);
    }
    unuse(user, *spec);
}

const std::vector<Volumes::User>& Volumes::users(std::string_view claim_full_name) const {
    static const std::vector<User> kNobody;
    const auto found = users_.find(claim_full_name);
    return found == users_.end() ? kNobody : found->second;
}

const std::vector<Volumes::Placed>& Volumes::placed(uint32_t row) const {
    static const std::vector<Placed> kNobody;
    return row < placed_.size() ? placed_[row] : kNobody;
}

// ---- questions

std::vector<std::shared_ptr<const model::PersistentVolume>> Volumes::volumes_of_class(std::string_view name) const {
    std::vector<std::shared_ptr<const model::PersistentVolume>> out;
    const auto found = by_class_.find(name);
    if (found == by_class_.end()) return out;
    for (const auto& entry : found->second) out.push_back(volumes_.find(entry.name));
    return out;
}

std::vector<std::shared_ptr<const model::CsiStorageCapacity>> Volumes::capacities_of_class(
    std::string_view name) const {
    std::vector<std::shared_ptr<const model::CsiStorageCapacity>> out;
    const auto found = capacities_by_class_.find(name);
    if (found == capacities_by_class_.end()) return out;
    for (const auto& entry : found->second) out.push_back(capacities_.find(entry));
    return out;
}

std::optional<Volumes::Attachable> Volumes::of_class(std::string_view name, const std::string& claim) const {
    const auto found = name.empty() ? nullptr : classes_.find(name);
    if (!found || found->provisioner.empty()) return std::nullopt;
    return attachable_of(model::driver_of_provisioner(found->provisioner), "unbound " + claim);
}

// A claim that has no volume yet stands for one that its class will make.
std::optional<Volumes::Attachable> Volumes::of_claim(const model::PersistentVolumeClaim& claim) const {
    const auto volume = claim.volume.empty() ? nullptr : volumes_.find(claim.volume);
    if (!volume) return of_class(claim.class_name(), claim.meta.full_name());
    const auto& source = volume->source;
    if (!source || source->driver.empty() || source->handle.empty()) return std::nullopt;
    return attachable_of(source->driver, source->handle);
}

std::optional<Volumes::Attachable> Volumes::of_volume(const model::PodSpec& spec, const model::Volume& volume) const {
    if (volume.kind == model::VolumeKind::Claim || volume.kind == model::VolumeKind::Ephemeral) {
        const auto claim = claims_.find(claim_key(spec, volume));
        return claim ? of_claim(*claim) : std::nullopt;
    }
    const std::string_view plugin = in_tree_plugin(volume.kind);
    if (plugin.empty()) return std::nullopt;
    return attachable_of(model::driver_of_provisioner(plugin), volume.id);
}

std::vector<Volumes::Attachable> Volumes::attachables(const model::PodSpec& spec, bool reservation) const {
    std::vector<Attachable> out;
    for (const auto& volume : spec.volumes) {
        const bool promised = reservation && volume.kind == model::VolumeKind::Ephemeral;
        auto made = promised ? of_class(volume.extra, claim_key(spec, volume)) : of_volume(spec, volume);
        if (made) out.push_back(*std::move(made));
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

std::vector<Volumes::Attachable> Volumes::attached(std::string_view node) const {
    std::vector<Attachable> out;
    const auto found = attachments_by_node_.find(node);
    if (found == attachments_by_node_.end()) return out;
    for (const auto& name : found->second) {
        const auto attachment = attachments_.find(name);
        const auto volume = attachment->volume.empty() ? nullptr : volumes_.find(attachment->volume);
        if (attachment->attacher.empty() || !volume || !volume->source || !volume->source->csi) continue;
        out.push_back(attachable_of(attachment->attacher, volume->source->handle));
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

}  // namespace berth::ledger
