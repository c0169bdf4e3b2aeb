#include "fleet/translate.h"

#include <fmt/format.h>

#include <array>

#include "model/times.h"

namespace berth::fleet {
namespace {

using base::find;
using base::find_string;

JsonObject object_of(const Labels& labels) {
    JsonObject out;
    for (const auto& [key, value] : labels) out[key] = value;
    return out;
}

Json text_of(const Labels& labels) {
    return Json(base::to_text(Json(object_of(labels))));
}

Labels labels_in(const std::string* text) {
    if (text == nullptr) return {};
    const auto parsed = base::parse_json(*text);
    return parsed ? read_labels(&*parsed) : Labels();
}

int64_t bytes_of(const Json& volume) {
    for (const char* disk : {"localDisk", "emptyDisk"}) {
        if (find(volume, {disk}) == nullptr) continue;
        const auto size = Quantity::parse(find_string(volume, {disk, "sizeLimit"}));
        return size ? size->value() : 0;
    }
    return -1;
}

model::IriVolume volume_of(const Json& volume) {
    model::IriVolume out;
    out.name = find_string(volume, {"name"});
    out.device = find_string(volume, {"device"});
    out.local_disk_bytes = bytes_of(volume);
    out.local_disk_image = find_string(volume, {"localDisk", "image"});
    return out;
}

// Text that a label's value may have; longer ones are told by their hash.
std::string label_value(const std::string& text) {
    return text.size() <= 63 ? text : short_hash(text);
}

JsonObject brokered_meta(const std::string& name, const model::IriMeta& meta, const BrokerPlace& place,
                         const char* manager, const std::string& lineage, uint64_t attempt) {
    JsonObject labels{{kBroker, manager},
                      {model::kLineageLabel, label_value(lineage)},
                      {model::kAttemptLabel, std::to_string(attempt)}};
    const std::string uid(meta.labels.get(kMachineUid));
    if (!uid.empty()) labels[kMachineUid] = uid;
    JsonObject annotations{{kBrokerLabels, text_of(meta.labels)}, {kBrokerAnnotations, text_of(meta.annotations)}};
    if (!place.pool.empty()) annotations[kPinnedPools] = place.pool;
    return {{"name", name},
            {"namespace", place.ns},
            {"labels", std::move(labels)},
            {"annotations", std::move(annotations)}};
}

constexpr std::array kStates{"Pending", "Running", "Shutdown", "Terminated", "Terminating", "Shutdown"};

}  // namespace

std::string lineage_of(const model::IriMeta& meta, std::string_view uid_label) {
    const std::string ours(meta.labels.get(model::kLineageLabel));
    return ours.empty() ? std::string(meta.labels.get(uid_label)) : ours;
}

std::string brokered_machine_name(const std::string& lineage) {
    return "m-" + short_hash(lineage);
}

std::string brokered_reservation_name(const std::string& lineage, uint64_t attempt) {
    return fmt::format("r-{}-{}", short_hash(lineage), attempt);
}

model::IriMachine iri_machine(const Json& document, const Machine& machine, const model::Amounts& needs) {
    model::IriMachine out;
    out.meta.labels = Labels{{kMachineUid, machine.meta.uid},
                             {"machinepoollet.ironcore.dev/machine-namespace", machine.meta.ns},
                             {"machinepoollet.ironcore.dev/machine-name", machine.meta.name},
                             {model::kLineageLabel, machine.lineage},
                             {model::kAttemptLabel, std::to_string(machine.attempt)}};
    out.meta.annotations = Labels{{model::kResourcesAnnotation, model::text_of(needs)}};
    out.on = machine.on;
    out.machine_class = machine.machine_class;
    out.hostname = find_string(document, {"spec", "guestConfig", "hostname"});
    if (const Json* volumes = find(document, {"spec", "volumes"}); volumes != nullptr && volumes->is_array()) {
        for (const auto& volume : volumes->get_array()) out.volumes.push_back(volume_of(volume));
    }
    if (const Json* nics = find(document, {"spec", "networkInterfaces"}); nics != nullptr && nics->is_array()) {
        for (const auto& nic : nics->get_array()) {
            const auto network = find_string(nic, {"networkInterfaceRef", "name"});
            out.network_interfaces.push_back({std::string(find_string(nic, {"name"})), std::string(network), {}, {}});
        }
    }
    return out;
}

Json brokered_machine(const model::IriMachine& machine, const BrokerPlace& place) {
    const std::string lineage = lineage_of(machine.meta, kMachineUid);
    JsonObject meta = brokered_meta(brokered_machine_name(lineage), machine.meta, place, kMachineBroker, lineage,
                                    model::attempt_of(machine.meta.labels));
    const std::string* resources = machine.meta.annotations.find(model::kResourcesAnnotation);
    if (resources != nullptr) meta["annotations"].get_object()[model::kResourcesAnnotation] = *resources;
    JsonArray nics;
    for (const auto& nic : machine.network_interfaces) {
        const std::string network = nic.network_id.empty() ? nic.name : nic.network_id;
        nics.push_back(JsonObject{{"name", nic.name}, {"networkInterfaceRef", JsonObject{{"name", network}}}});
    }
    JsonArray volumes;
    for (const auto& volume : machine.volumes) {
        JsonObject one{{"name", volume.name}};
        if (!volume.device.empty()) one["device"] = volume.device;
        if (volume.local_disk_bytes >= 0) {
            JsonObject disk;
            if (volume.local_disk_bytes > 0)
                disk["sizeLimit"] = Quantity::from_value(volume.local_disk_bytes, Quantity::Format::BinarySI).text();
            if (!volume.local_disk_image.empty()) disk["image"] = volume.local_disk_image;
            one["localDisk"] = std::move(disk);
        } else {
            one["volumeRef"] = JsonObject{{"name", volume.handle.empty() ? volume.name : volume.handle}};
        }
        volumes.push_back(std::move(one));
    }
    JsonObject spec{{"machineClassRef", JsonObject{{"name", machine.machine_class}}},
                    {"power", machine.on ? "On" : "Off"}};
    if (!nics.empty()) spec["networkInterfaces"] = std::move(nics);
    if (!volumes.empty()) spec["volumes"] = std::move(volumes);
    if (!place.selector.empty()) spec["machinePoolSelector"] = object_of(place.selector);
    if (!machine.hostname.empty()) spec["guestConfig"] = JsonObject{{"hostname", machine.hostname}};
    return JsonObject{{"apiVersion", "compute.ironcore.dev/v1alpha1"},
                      {"kind", "Machine"},
                      {"metadata", std::move(meta)},
                      {"spec", std::move(spec)}};
}

Json brokered_reservation(const model::IriReservation& reservation, const BrokerPlace& place) {
    const model::HoldAsk& ask = reservation.ask;
    JsonObject meta = brokered_meta(brokered_reservation_name(ask.lineage, ask.attempt), reservation.meta, place,
                                    kReservationBroker, ask.lineage, ask.attempt);
    std::string pinned = place.pool;
    for (const auto& pool : ask.pools) {
        if (place.pool.empty()) pinned += (pinned.empty() ? "" : ",") + pool;
    }
    if (!pinned.empty()) meta["annotations"].get_object()[kPinnedPools] = pinned;
    JsonObject amounts;
    for (const auto& [name, amount] : ask.resources) amounts[name] = amount.text();
    JsonObject spec{{"resources", std::move(amounts)}, {"pools", JsonArray()}};
    if (!ask.machine_class.empty()) spec["machineClassRef"] = JsonObject{{"name", ask.machine_class}};
    // Selector and tolerations of the layer above are about its pools, not about these.
    if (!place.selector.empty()) spec["poolSelector"] = object_of(place.selector);
    if (ask.priority != 0) spec["priority"] = ask.priority;
    if (!ask.group.empty()) spec["group"] = ask.group;
    if (ask.duration) spec["duration"] = model::duration_text(*ask.duration);
    return JsonObject{{"apiVersion", "core.ironcore.dev/v1alpha1"},
                      {"kind", "Reservation"},
                      {"metadata", std::move(meta)},
                      {"spec", std::move(spec)}};
}

model::IriMachine iri_of(const Machine& machine) {
    model::IriMachine out;
    out.meta.id = machine.meta.name;
    out.meta.labels = labels_in(machine.meta.annotations.find(kBrokerLabels));
    out.meta.annotations = labels_in(machine.meta.annotations.find(kBrokerAnnotations));
    out.meta.created_at = machine.meta.created.nanos;
    out.meta.deleted_at = machine.meta.deleted ? machine.meta.deleted->nanos : 0;
    out.on = machine.on;
    out.machine_class = machine.machine_class;
    for (size_t i = 0; i < kStates.size(); ++i) {
        if (machine.state != kStates[i]) continue;
        out.state = static_cast<model::IriMachineState>(i);
        break;
    }
    return out;
}

model::IriReservation iri_of(const Reservation& reservation) {
    model::IriReservation out;
    out.meta.id = reservation.meta.name;
    out.meta.labels = labels_in(reservation.meta.annotations.find(kBrokerLabels));
    out.meta.annotations = labels_in(reservation.meta.annotations.find(kBrokerAnnotations));
    out.meta.created_at = reservation.meta.created.nanos;
    out.ask = reservation.ask;
    out.answer = reservation.asked.told;
    out.sequence = reservation.meta.revision;
    return out;
}

}  // namespace berth::fleet
