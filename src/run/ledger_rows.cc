#include "run/ledger_rows.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "base/json.h"
#include "fleet/objects.h"

namespace berth::run {
namespace {

using base::find;
using base::find_string;

JsonObject object_of(const Labels& labels) {
    JsonObject out;
    for (const auto& [key, value] : labels) out[key] = value;
    return out;
}

JsonObject object_of(const model::Amounts& amounts) {
    JsonObject out;
    for (const auto& [name, amount] : amounts) out[name] = amount.text();
    return out;
}

int64_t number(const Json& object, std::string_view name) {
    const Json* found = find(object, {name});
    return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

bool flag(const Json& object, std::string_view name) {
    const Json* found = find(object, {name});
    return found != nullptr && found->is_bool() && found->get_bool();
}

JsonObject meta_document(const model::IriMeta& meta) {
    return {{"id", meta.id},
            {"labels", object_of(meta.labels)},
            {"annotations", object_of(meta.annotations)},
            {"generation", meta.generation},
            {"created", meta.created_at}};
}

model::IriMeta read_meta(const Json& object) {
    model::IriMeta out;
    out.id = find_string(object, {"id"});
    out.labels = fleet::read_labels(find(object, {"labels"}));
    out.annotations = fleet::read_labels(find(object, {"annotations"}));
    out.generation = number(object, "generation");
    out.created_at = number(object, "created");
    return out;
}

JsonObject hold_document(const LedgerParts& parts, base::Instant now) {
    const auto& hold = *parts.hold;
    JsonObject out{{"attempt", static_cast<int64_t>(hold.ask.attempt)},
                   {"resources", object_of(hold.ask.resources)},
                   {"class", hold.ask.machine_class},
                   {"priority", hold.ask.priority},
                   {"group", hold.ask.group},
                   {"state", model::name_of(hold.state)},
                   {"reason", model::name_of(hold.reason)},
                   {"score", hold.score},
                   {"committed", hold.committed},
                   {"order", static_cast<int64_t>(hold.order)},
                   {"sequence", static_cast<int64_t>(hold.sequence)}};
    if (hold.until) out["left"] = (*hold.until - now).count();
    if (parts.reservation) out["meta"] = meta_document(*parts.reservation);
    return out;
}

JsonObject machine_document(const LedgerParts& parts) {
    JsonObject out{{"attempt", static_cast<int64_t>(parts.machine->attempt)},
                   {"resources", object_of(parts.machine->amounts)}};
    if (!parts.record) return out;
    const auto& record = *parts.record;
    out["meta"] = meta_document(record.meta);
    out["on"] = record.on;
    out["class"] = record.machine_class;
    out["ignition"] = base::to_base64(record.ignition);  // bytes of any kind
    out["hostname"] = record.hostname;
    out["state"] = static_cast<int64_t>(record.state);
    JsonArray volumes;
    for (const auto& volume : record.volumes) {
        volumes.push_back(JsonObject{{"name", volume.name},
                                     {"device", volume.device},
                                     {"bytes", volume.local_disk_bytes},
                                     {"image", volume.local_disk_image},
                                     {"driver", volume.driver},
                                     {"handle", volume.handle}});
    }
    out["volumes"] = std::move(volumes);
    JsonArray nics;
    for (const auto& nic : record.network_interfaces)
        nics.push_back(JsonObject{{"name", nic.name}, {"network", nic.network_id}});
    out["nics"] = std::move(nics);
    return out;
}

Status read_hold(const Json& document, const std::string& lineage, base::Instant now, LedgerParts& out) {
    fleet::HoldTable::Hold hold;
    hold.ask.lineage = lineage;
    hold.ask.attempt = static_cast<uint64_t>(number(document, "attempt"));
    hold.ask.resources = TRY(fleet::read_amounts(find(document, {"resources"})));
    hold.ask.machine_class = find_string(document, {"class"});
    hold.ask.priority = static_cast<int32_t>(number(document, "priority"));
    hold.ask.group = find_string(document, {"group"});
    hold.state = model::hold_state(find_string(document, {"state"}));
    hold.reason = model::hold_reason(find_string(document, {"reason"}));
    hold.score = static_cast<int32_t>(number(document, "score"));
    hold.committed = flag(document, "committed");
    hold.order = static_cast<uint64_t>(number(document, "order"));
    hold.sequence = static_cast<uint64_t>(number(document, "sequence"));
    if (find(document, {"left"}) != nullptr) hold.until = now + base::Duration(number(document, "left"));
    if (const Json* meta = find(document, {"meta"})) out.reservation = read_meta(*meta);
    out.hold = std::move(hold);
    return {};
}

Status read_machine(const Json& document, const std::string& lineage, LedgerParts& out) {
    out.machine = fleet::HoldTable::Machine{lineage, static_cast<uint64_t>(number(document, "attempt")),
                                            TRY(fleet::read_amounts(find(document, {"resources"})))};
    model::IriMachine record;
    if (const Json* meta = find(document, {"meta"})) record.meta = read_meta(*meta);
    record.on = flag(document, "on");
    record.machine_class = find_string(document, {"class"});
    record.ignition = base::from_base64(find_string(document, {"ignition"})).value_or("");
    record.hostname = find_string(document, {"hostname"});
    record.state = static_cast<model::IriMachineState>(number(document, "state"));
    record.observed_generation = record.meta.generation;
    const auto each = [&](std::string_view name, auto take) {
        const Json* list = find(document, {name});
        if (list == nullptr || !list->is_array()) return;
        for (const auto& item : list->get_array()) take(item);
    };
    each("volumes", [&](const Json& item) {
        model::IriVolume volume;
        volume.name = find_string(item, {"name"});
        volume.device = find_string(item, {"device"});
        volume.local_disk_bytes = number(item, "bytes");
        volume.local_disk_image = find_string(item, {"image"});
        volume.driver = find_string(item, {"driver"});
        volume.handle = find_string(item, {"handle"});
        record.volumes.push_back(std::move(volume));
    });
    each("nics", [&](const Json& item) {
        record.network_interfaces.push_back(
            {std::string(find_string(item, {"name"})), std::string(find_string(item, {"network"})), {}, {}});
    });
    out.record = std::move(record);
    return {};
}

}  // namespace

LedgerRow ledger_row(const std::string& lineage, const LedgerParts& parts, base::Instant now) {
    LedgerRow out;
    out.lineage = lineage;
    if (parts.hold) out.hold = base::to_text(Json(hold_document(parts, now)));
    if (parts.machine) out.machine = base::to_text(Json(machine_document(parts)));
    if (parts.fence)
        out.fence = base::to_text(Json(JsonObject{{"attempt", static_cast<int64_t>(parts.fence->attempt)},
                                                  {"left", (parts.fence->until - now).count()}}));
    return out;
}

Result<LedgerParts> read_ledger_row(const LedgerRow& row, base::Instant now) {
    LedgerParts out;
    if (!row.hold.empty()) {
        const Json hold = TRY(base::parse_json(row.hold));
        TRY(read_hold(hold, row.lineage, now, out));
    }
    if (!row.machine.empty()) {
        const Json machine = TRY(base::parse_json(row.machine));
        TRY(read_machine(machine, row.lineage, out));
    }
    if (!row.fence.empty()) {
        const Json fence = TRY(base::parse_json(row.fence));
        out.fence = fleet::HoldTable::Fence{static_cast<uint64_t>(number(fence, "attempt")),
                                            now + base::Duration(number(fence, "left"))};
    }
    return out;
}

}  // namespace berth::run
