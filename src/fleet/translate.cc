#include "fleet/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/base64.h"
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

void read_spec(const Json& document, const Machine& machine, model::IriMachine& out) {
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
}

template <class List>
const typename List::value_type* named(const List& list, const std::string& name) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.name == name; });
    return found == list.end() ? nullptr : &*found;
}

// What a list of the status says, without the times.
JsonArray attachments(const Json& document, std::string_view list) {
    JsonArray out;
    const Json* found = find(document, {"status", list});
    if (found == nullptr || !found->is_array()) return out;
    for (const auto& each : found->get_array()) {
        out.push_back(JsonObject{{"name", find_string(each, {"name"})},
                                 {"handle", find_string(each, {"handle"})},
                                 {"state", find_string(each, {"state"})}});
    }
    return out;
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

constexpr const char* kIgnitionKey = "ignition.yaml";

// One for each attempt: that of an old one may go late.
std::string ignition_name(const model::IriMachine& machine) {
    return fmt::format("{}-{}", brokered_machine_name(lineage_of(machine.meta, kMachineUid)),
                       model::attempt_of(machine.meta.labels));
}

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
    read_spec(document, machine, out);
    return out;
}

Json volume_document(const model::IriVolume& volume) {
    JsonObject out{{"name", volume.name}};
    if (!volume.device.empty()) out["device"] = volume.device;
    if (volume.local_disk_bytes >= 0) {
        JsonObject disk;
        if (volume.local_disk_bytes > 0)
            disk["sizeLimit"] = Quantity::from_value(volume.local_disk_bytes, Quantity::Format::BinarySI).text();
        if (!volume.local_disk_image.empty()) disk["image"] = volume.local_disk_image;
        out["localDisk"] = std::move(disk);
    } else {
        out["volumeRef"] = JsonObject{{"name", volume.handle.empty() ? volume.name : volume.handle}};
    }
    return out;
}

Json interface_document(const model::IriNetworkInterface& nic) {
    const std::string network = nic.network_id.empty() ? nic.name : nic.network_id;
    return JsonObject{{"name", nic.name}, {"networkInterfaceRef", JsonObject{{"name", network}}}};
}

Json brokered_machine(const model::IriMachine& machine, const BrokerPlace& place) {
    const std::string lineage = lineage_of(machine.meta, kMachineUid);
    JsonObject meta = brokered_meta(brokered_machine_name(lineage), machine.meta, place, kMachineBroker, lineage,
                                    model::attempt_of(machine.meta.labels));
    const std::string* resources = machine.meta.annotations.find(model::kResourcesAnnotation);
    if (resources != nullptr) meta["annotations"].get_object()[model::kResourcesAnnotation] = *resources;
    JsonArray nics;
    for (const auto& nic : machine.network_interfaces) nics.push_back(interface_document(nic));
    JsonArray volumes;
    for (const auto& volume : machine.volumes) volumes.push_back(volume_document(volume));
    JsonObject spec{{"machineClassRef", JsonObject{{"name", machine.machine_class}}},
                    {"power", machine.on ? "On" : "Off"}};
    if (!nics.empty()) spec["networkInterfaces"] = std::move(nics);
    if (!volumes.empty()) spec["volumes"] = std::move(volumes);
    if (!place.selector.empty()) spec["machinePoolSelector"] = object_of(place.selector);
    if (!machine.ignition.empty())
        spec["ignitionRef"] = JsonObject{{"name", ignition_name(machine)}, {"key", kIgnitionKey}};
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
    if (!ask.keeps()) meta["labels"].get_object()[kAsks] = kByLabel;
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

std::optional<IgnitionRef> ignition_ref(const Json& machine) {
    const std::string name(find_string(machine, {"spec", "ignitionRef", "name"}));
    if (name.empty()) return std::nullopt;
    const std::string key(find_string(machine, {"spec", "ignitionRef", "key"}));
    return IgnitionRef{name, key.empty() ? kIgnitionKey : key};
}

Result<std::string> ignition_in(const Json& secret, const IgnitionRef& ref) {
    const Json* value = find(secret, {"data", ref.key});
    if (value == nullptr || !value->is_string())
        return base::not_found(fmt::format("secret {} has no key {}", ref.name, ref.key));
    const auto bytes = base::from_base64(std::string_view(value->get_string()));
    if (!bytes) return base::bad_request(fmt::format("secret {}: {} is not base64", ref.name, ref.key));
    return *bytes;
}

Json brokered_ignition(const model::IriMachine& machine, const BrokerPlace& place) {
    return JsonObject{{"apiVersion", "v1"},
                      {"kind", "Secret"},
                      {"type", "compute.ironcore.dev/ignition"},
                      {"metadata", JsonObject{{"name", ignition_name(machine)},
                                              {"namespace", place.ns},
                                              {"labels", JsonObject{{kBroker, kMachineBroker}}}}},
                      {"data", JsonObject{{kIgnitionKey, base::to_base64(machine.ignition)}}}};
}

std::optional<MachineUpdate> next_update(const model::IriMachine& wanted, const model::IriMachine& below) {
    using Do = MachineUpdate::Do;
    if (wanted.on != below.on) return MachineUpdate{Do::Power, wanted.on, {}, {}};
    for (const auto& each : below.volumes) {
        if (named(wanted.volumes, each.name) == nullptr) return MachineUpdate{Do::DetachVolume, true, each, {}};
    }
    for (const auto& each : below.network_interfaces) {
        if (named(wanted.network_interfaces, each.name) == nullptr)
            return MachineUpdate{Do::DetachInterface, true, {}, each};
    }
    for (const auto& each : wanted.volumes) {
        const auto* there = named(below.volumes, each.name);
        if (there == nullptr) return MachineUpdate{Do::AttachVolume, true, each, {}};
        if (there->local_disk_bytes != each.local_disk_bytes) return MachineUpdate{Do::UpdateVolume, true, each, {}};
    }
    for (const auto& each : wanted.network_interfaces) {
        if (named(below.network_interfaces, each.name) == nullptr)
            return MachineUpdate{Do::AttachInterface, true, {}, each};
    }
    return std::nullopt;
}

void apply(const MachineUpdate& update, model::IriMachine& below) {
    using Do = MachineUpdate::Do;
    const auto without = [](auto& list, const auto& one) {
        std::erase_if(list, [&](const auto& each) { return each.name == one.name; });
    };
    switch (update.what) {
        case Do::Power:
            below.on = update.on;
            break;
        case Do::AttachVolume:
        case Do::UpdateVolume:
            without(below.volumes, update.volume);
            below.volumes.push_back(update.volume);
            break;
        case Do::DetachVolume:
            without(below.volumes, update.volume);
            break;
        case Do::AttachInterface:
            without(below.network_interfaces, update.network_interface);
            below.network_interfaces.push_back(update.network_interface);
            break;
        case Do::DetachInterface:
            without(below.network_interfaces, update.network_interface);
            break;
    }
}

JsonObject status_changes(const Json& document, const model::IriMachine& below, const std::string& machine_id,
                          bool settled) {
    const bool there = below.state != model::IriMachineState::Pending;
    const auto entry = [&](const std::string& name, const std::string& handle) {
        return JsonObject{{"name", name},
                          {"handle", handle.empty() ? below.meta.id + "/" + name : handle},
                          {"state", there ? "Attached" : "Pending"}};
    };
    JsonArray volumes;
    for (const auto& each : below.volumes) volumes.push_back(entry(each.name, each.handle));
    JsonArray nics;
    for (const auto& each : below.network_interfaces) nics.push_back(entry(each.name, ""));
    JsonObject out;
    const auto say = [&](std::string_view member, Json value) {
        const Json* has = find(document, {"status", member});
        if (has == nullptr || *has != value) out[member] = std::move(value);
    };
    say("machineID", Json(machine_id));
    say("state", Json(kStates[static_cast<size_t>(below.state)]));
    if (attachments(document, "volumes") != volumes) out["volumes"] = std::move(volumes);
    if (attachments(document, "networkInterfaces") != nics) out["networkInterfaces"] = std::move(nics);
    const Json* generation = find(document, {"metadata", "generation"});
    if (settled && generation != nullptr && generation->is_int64()) say("observedGeneration", *generation);
    return out;
}

model::IriMachine iri_of(const Machine& machine, const Json& document) {
    model::IriMachine out;
    out.meta.id = machine.meta.name;
    out.meta.labels = labels_in(machine.meta.annotations.find(kBrokerLabels));
    out.meta.annotations = labels_in(machine.meta.annotations.find(kBrokerAnnotations));
    out.meta.generation = machine.generation;
    out.meta.created_at = machine.meta.created.nanos;
    out.meta.deleted_at = machine.meta.deleted ? machine.meta.deleted->nanos : 0;
    read_spec(document, machine, out);
    const Json* observed = find(document, {"status", "observedGeneration"});
    if (observed != nullptr && observed->is_int64()) out.observed_generation = observed->get_int64();
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
