#include "model/storage.h"

#include <algorithm>
#include <array>

#include "model/read_selectors.h"
#include "model/reader.h"

namespace berth::model {
namespace {

template <class T>
Result<T> finish(T value, std::string_view kind, const std::string& trouble) {
    if (trouble.empty()) return value;
    return base::bad_request(std::string(kind) + " \"" + value.meta.full_name() + "\": " + trouble);
}

AccessModes read_modes(const Reader& list) {
    static constexpr std::pair<std::string_view, AccessMode> kModes[] = {
        {"ReadWriteOnce", AccessMode::ReadWriteOnce},
        {"ReadOnlyMany", AccessMode::ReadOnlyMany},
        {"ReadWriteMany", AccessMode::ReadWriteMany},
        {"ReadWriteOncePod", AccessMode::ReadWriteOncePod}};
    AccessModes modes;
    list.each([&](const Reader& item) {
        for (const auto& [name, mode] : kModes) {
            if (item.text() == name) modes.bits = static_cast<uint8_t>(modes.bits | static_cast<uint8_t>(mode));
        }
    });
    return modes;
}

std::optional<Quantity> read_quantity(const Reader& field) {
    if (!field.present()) return std::nullopt;
    auto parsed = Quantity::parse(field.text_or_number());
    if (parsed) return *parsed;
    field.wrong(parsed.error().message);
    return std::nullopt;
}

ReclaimPolicy read_reclaim(std::string_view text, ReclaimPolicy otherwise) {
    if (text == "Retain") return ReclaimPolicy::Retain;
    if (text == "Recycle") return ReclaimPolicy::Recycle;
    return text == "Delete" ? ReclaimPolicy::Delete : otherwise;
}

template <class Phase, size_t N>
Phase read_phase(std::string_view text, const std::array<std::string_view, N>& names) {
    const auto found = std::find(names.begin(), names.end(), text);
    return found == names.end() ? Phase() : static_cast<Phase>(found - names.begin());
}

// The beta annotation outranks the field.
std::optional<std::string> read_class(const Meta& meta, const Reader& field) {
    if (const std::string* beta = meta.annotations.find(kBetaStorageClass)) return *beta;
    if (!field.present()) return std::nullopt;
    return std::string(field.text());
}

// "aws://us-east-1a/vol-1" is vol-1.
std::string_view last_part(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::optional<VolumeSource> read_source(const Reader& spec) {
    const auto in_tree = [](std::string_view plugin, std::string_view handle) {
        return VolumeSource{std::string(driver_of_provisioner(plugin)), std::string(handle), false};
    };
    if (const Reader csi = spec["csi"]; csi.present()) {
        return VolumeSource{std::string(csi["driver"].text()), std::string(csi["volumeHandle"].text()), true};
    }
    if (const Reader ebs = spec["awsElasticBlockStore"]; ebs.present()) {
        return in_tree("kubernetes.io/aws-ebs", last_part(ebs["volumeID"].text()));
    }
    if (const Reader gce = spec["gcePersistentDisk"]; gce.present()) {
        return in_tree("kubernetes.io/gce-pd", gce["pdName"].text());
    }
    if (const Reader azure = spec["azureDisk"]; azure.present()) {
        return in_tree("kubernetes.io/azure-disk", azure["diskURI"].text());
    }
    if (const Reader cinder = spec["cinder"]; cinder.present()) {
        return in_tree("kubernetes.io/cinder", cinder["volumeID"].text());
    }
    return std::nullopt;
}

Selector read_topology_term(const Reader& from) {
    std::vector<Requirement> all;
    const Reader expressions = from["matchLabelExpressions"];
    expressions.each([&](const Reader& item) {
        auto made = make_requirement(std::string(item["key"].text()), Requirement::Op::In, read_texts(item["values"]));
        if (!made) return item.wrong(made.error().message);
        all.push_back(*std::move(made));
    });
    return all.empty() ? Selector::nothing() : Selector(std::move(all));
}

}  // namespace

std::string_view driver_of_provisioner(std::string_view provisioner) {
    static constexpr std::pair<std::string_view, std::string_view> kMigrated[] = {
        {"kubernetes.io/aws-ebs", "ebs.csi.aws.com"},
        {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io"},
        {"kubernetes.io/azure-disk", "disk.csi.azure.com"},
        {"kubernetes.io/cinder", "cinder.csi.openstack.org"}};
    for (const auto& [plugin, driver] : kMigrated) {
        if (provisioner == plugin) return driver;
    }
    return provisioner;
}

bool PersistentVolume::is_for(const Meta& claim_meta) const {
    return claim && claim->ns == claim_meta.ns && claim->name == claim_meta.name &&
           (claim->uid.empty() || claim->uid == claim_meta.uid);
}

bool StorageClass::reaches(const Labels& node) const {
    if (!topologies || topologies->empty()) return true;
    return std::any_of(topologies->begin(), topologies->end(),
                       [&](const Selector& term) { return term.matches(node); });
}

Result<PersistentVolume> read_persistent_volume(JsonView object) {
    static constexpr std::array<std::string_view, 5> kPhases{"Pending", "Available", "Bound", "Released", "Failed"};
    std::string trouble;
    const Reader root(object, trouble);
    PersistentVolume out;
    out.meta = read_meta(root);
    const Reader spec = root["spec"];
    const Reader status = root["status"];
    const Reader capacity = spec["capacity"];
    out.capacity = read_quantity(capacity["storage"]).value_or(Quantity());
    out.storage_class = read_class(out.meta, spec["storageClassName"]).value_or("");
    out.attributes_class = spec["volumeAttributesClassName"].text();
    out.modes = read_modes(spec["accessModes"]);
    out.block = spec["volumeMode"].text() == "Block";
    out.reclaim = read_reclaim(spec["persistentVolumeReclaimPolicy"].text(), ReclaimPolicy::Retain);
    const Reader affinity = spec["nodeAffinity"];
    if (const Reader required = affinity["required"]; required.present()) {
        out.affinity = NodeSelector(read_node_selector_terms(required["nodeSelectorTerms"]));
    }
    if (const Reader claim = spec["claimRef"]; claim.present()) {
        out.claim = ClaimRef{std::string(claim["namespace"].text()), std::string(claim["name"].text()),
                             std::string(claim["uid"].text())};
    }
    out.source = read_source(spec);
    out.phase = read_phase<VolumePhase>(status["phase"].text(), kPhases);
    return finish(std::move(out), "PersistentVolume", trouble);
}

Result<PersistentVolumeClaim> read_persistent_volume_claim(JsonView object) {
    static constexpr std::array<std::string_view, 3> kPhases{"Pending", "Bound", "Lost"};
    std::string trouble;
    const Reader root(object, trouble);
    PersistentVolumeClaim out;
    out.meta = read_meta(root);
    if (out.meta.ns.empty()) out.meta.ns = "default";
    const Reader spec = root["spec"];
    const Reader status = root["status"];
    out.storage_class = read_class(out.meta, spec["storageClassName"]);
    out.attributes_class = spec["volumeAttributesClassName"].text();
    out.selector = read_selector(spec["selector"]);
    const Reader resources = spec["resources"];
    const Reader requests = resources["requests"];
    out.request = read_quantity(requests["storage"]);
    out.modes = read_modes(spec["accessModes"]);
    out.block = spec["volumeMode"].text() == "Block";
    out.volume = spec["volumeName"].text();
    out.phase = read_phase<ClaimPhase>(status["phase"].text(), kPhases);
    if (const std::string* node = out.meta.annotations.find(kSelectedNode)) out.selected_node = *node;
    out.bind_completed = out.meta.annotations.has(kBindCompleted);
    return finish(std::move(out), "PersistentVolumeClaim", trouble);
}

Result<StorageClass> read_storage_class(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    StorageClass out;
    out.meta = read_meta(root);
    out.provisioner = root["provisioner"].text();
    out.wait_for_consumer = root["volumeBindingMode"].text() == "WaitForFirstConsumer";
    out.is_default = out.meta.annotations.get("storageclass.kubernetes.io/is-default-class") == "true" ||
                     out.meta.annotations.get("storageclass.beta.kubernetes.io/is-default-class") == "true";
    out.reclaim = read_reclaim(root["reclaimPolicy"].text(), ReclaimPolicy::Delete);
    if (const Reader topologies = root["allowedTopologies"]; topologies.present()) {
        out.topologies.emplace();
        topologies.each([&](const Reader& item) { out.topologies->push_back(read_topology_term(item)); });
    }
    return finish(std::move(out), "StorageClass", trouble);
}

Result<CsiNode> read_csi_node(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    CsiNode out;
    out.meta = read_meta(root);
    const Reader spec = root["spec"];
    const Reader drivers = spec["drivers"];
    drivers.each([&](const Reader& item) {
        CsiNode::Driver driver;
        driver.name = item["name"].text();
        const Reader allocatable = item["allocatable"];
        if (const Reader count = allocatable["count"]; count.present()) driver.limit = count.integer();
        out.drivers.push_back(std::move(driver));
    });
    return finish(std::move(out), "CSINode", trouble);
}

Result<CsiDriver> read_csi_driver(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    CsiDriver out;
    out.meta = read_meta(root);
    const Reader spec = root["spec"];
    out.storage_capacity = spec["storageCapacity"].flag();
    return finish(std::move(out), "CSIDriver", trouble);
}

Result<CsiStorageCapacity> read_csi_storage_capacity(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    CsiStorageCapacity out;
    out.meta = read_meta(root);
    out.storage_class = root["storageClassName"].text();
    out.topology = read_selector(root["nodeTopology"]);
    out.largest = read_quantity(root["maximumVolumeSize"]);
    if (!out.largest) out.largest = read_quantity(root["capacity"]);
    return finish(std::move(out), "CSIStorageCapacity", trouble);
}

Result<VolumeAttachment> read_volume_attachment(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    VolumeAttachment out;
    out.meta = read_meta(root);
    const Reader spec = root["spec"];
    out.attacher = spec["attacher"].text();
    out.node = spec["nodeName"].text();
    const Reader source = spec["source"];
    out.volume = source["persistentVolumeName"].text();
    return finish(std::move(out), "VolumeAttachment", trouble);
}

}  // namespace berth::model
