#include "fleet/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/times.h"

namespace berth::fleet {
namespace {

using base::find;
using base::find_string;

std::string text(const Json& object, std::initializer_list<std::string_view> path) {
    return std::string(find_string(object, path));
}

const JsonArray& list(const Json& object, std::initializer_list<std::string_view> path) {
    static const JsonArray kNone;
    const Json* found = find(object, path);
    return found != nullptr && found->is_array() ? found->get_array() : kNone;
}

std::vector<std::string> names(const Json& object, std::initializer_list<std::string_view> path) {
    std::vector<std::string> out;
    for (const auto& item : list(object, path)) {
        if (item.is_string()) out.emplace_back(item.get_string());
        if (item.is_object()) out.push_back(text(item, {"name"}));
    }
    return out;
}

std::vector<std::string> split(std::string_view words) {
    std::vector<std::string> out;
    while (!words.empty()) {
        const size_t comma = words.find(',');
        if (comma != 0) out.emplace_back(words.substr(0, comma));
        words.remove_prefix(comma == std::string_view::npos ? words.size() : comma + 1);
    }
    return out;
}

int64_t integer(const Json& object, std::initializer_list<std::string_view> path) {
    const Json* found = find(object, path);
    return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

bool flag(const Json& object, std::initializer_list<std::string_view> path) {
    const Json* found = find(object, path);
    return found != nullptr && found->is_bool() && found->get_bool();
}

Result<Quantity> quantity(const Json& value) {
    return Quantity::parse(value.is_string() ? std::string(value.get_string()) : base::to_text(value));
}

Result<model::Amounts> own_resources(const Json& spec) {
    model::Amounts out;
    const auto nics = static_cast<int64_t>(list(spec, {"networkInterfaces"}).size());
    if (nics > 0) out["nics"] = Quantity::from_value(nics);
    Quantity disks = Quantity::from_value(0, Quantity::Format::BinarySI);
    for (const auto& volume : list(spec, {"volumes"})) {
        for (const char* disk : {"localDisk", "emptyDisk"}) {
            const Json* size = find(volume, {disk, "sizeLimit"});
            if (size != nullptr) disks += TRY(quantity(*size));
        }
    }
    if (!disks.is_zero()) out["localStorage"] = disks;
    return out;
}

// Our own word, or what a broker was told.
std::optional<base::Duration> within_of(const Labels& annotations) {
    std::string word(annotations.get(kWithin));
    if (const auto* above = annotations.find(kBrokerAnnotations)) {
        const auto told = base::parse_json(*above);
        if (told) word = find_string(*told, {kWithin});
    }
    const auto read = model::parse_duration(word);
    if (!read || *read <= base::Duration::zero()) return std::nullopt;
    return *read;
}

model::HoldAnswer read_answer(const Json& object) {
    model::HoldAnswer out;
    out.state = model::hold_state(find_string(object, {"state"}));
    out.reason = model::hold_reason(find_string(object, {"reason"}));
    out.score = static_cast<int32_t>(integer(object, {"score"}));
    out.committed = flag(object, {"committed"});
    if (const auto lease = model::parse_duration(find_string(object, {"lease"}))) out.lease = *lease;
    return out;
}

}  // namespace

Labels read_labels(const Json* object) {
    std::vector<Labels::Entry> out;
    if (object == nullptr || !object->is_object()) return {};
    for (const auto& entry : object->get_object()) {
        if (entry.value().is_string()) out.emplace_back(entry.key(), std::string(entry.value().get_string()));
    }
    return Labels(std::move(out));
}

Result<model::Amounts> read_amounts(const Json* object) {
    model::Amounts out;
    if (object == nullptr || !object->is_object()) return out;
    for (const auto& entry : object->get_object()) {
        const auto amount = quantity(entry.value());
        if (!amount || amount->is_negative())
            return base::bad_request(
                fmt::format("{}: {} is no amount", std::string_view(entry.key()), base::to_text(entry.value())));
        out.emplace(entry.key(), *amount);
    }
    return out;
}

std::vector<Toleration> read_tolerations(const Json* items) {
    std::vector<Toleration> out;
    if (items == nullptr || !items->is_array()) return out;
    for (const auto& item : items->get_array()) {
        out.push_back(
            {text(item, {"key"}), text(item, {"operator"}), text(item, {"value"}), text(item, {"effect"}), {}});
    }
    return out;
}

model::Meta meta_of(const Json& object) {
    model::Meta out;
    const Json* meta = find(object, {"metadata"});
    if (meta == nullptr || !meta->is_object()) return out;
    out.ns = text(*meta, {"namespace"});
    out.name = text(*meta, {"name"});
    out.uid = text(*meta, {"uid"});
    const auto revision = find_string(*meta, {"resourceVersion"});
    std::from_chars(revision.data(), revision.data() + revision.size(), out.revision);
    if (const auto made = model::parse_time(find_string(*meta, {"creationTimestamp"}))) out.created = *made;
    if (const auto going = model::parse_time(find_string(*meta, {"deletionTimestamp"}))) out.deleted = *going;
    out.labels = read_labels(find(*meta, {"labels"}));
    out.annotations = read_labels(find(*meta, {"annotations"}));
    return out;
}

namespace {

Status read_needs(const Json& object, Machine& out) {
    if (const Json* spec = find(object, {"spec"})) out.own = TRY(own_resources(*spec));
    const std::string* told = out.meta.annotations.find(model::kResourcesAnnotation);
    if (told == nullptr) return {};
    const auto parsed = base::parse_json(*told);
    auto amounts = parsed && parsed->is_object() ? read_amounts(&*parsed) : base::bad_request("it is no JSON object");
    if (!amounts)
        return base::bad_request(
            fmt::format("annotation {}: {}", model::kResourcesAnnotation, amounts.error().message));
    out.resources = std::move(*amounts);
    return {};
}

}  // namespace

Result<Machine> read_machine(const Json& object) {
    Machine out;
    out.meta = meta_of(object);
    const std::string* lineage = out.meta.labels.find(model::kLineageLabel);
    out.lineage = lineage == nullptr ? out.meta.uid : *lineage;
    out.attempt = model::attempt_of(out.meta.labels);
    out.brokered = out.meta.labels.has(kBroker);
    out.machine_class = text(object, {"spec", "machineClassRef", "name"});
    out.pool = text(object, {"spec", "machinePoolRef", "name"});
    out.machine_id = text(object, {"status", "machineID"});
    out.generation = integer(object, {"metadata", "generation"});
    out.state = text(object, {"status", "state"});
    out.on = find_string(object, {"spec", "power"}) != "Off";
    out.finalizers = names(object, {"metadata", "finalizers"});
    out.finalized = std::find(out.finalizers.begin(), out.finalizers.end(), kMachineFinalizer) != out.finalizers.end();
    out.left = out.meta.labels.get(kLeft);
    out.selector = read_labels(find(object, {"spec", "machinePoolSelector"}));
    out.tolerations = read_tolerations(find(object, {"spec", "tolerations"}));
    out.pinned = split(out.meta.annotations.get(kPinnedPools));
    if (const auto read = read_needs(object, out); !read) out.trouble = read.error().message;
    return out;
}

Result<Reservation> read_reservation(const Json& object) {
    Reservation out;
    out.meta = meta_of(object);
    out.resource = find_string(object, {"apiVersion"}).starts_with("compute.") ? kDraftReservations : kReservations;
    out.brokered = out.meta.labels.has(kBroker);
    out.labelled = out.meta.labels.has(kAsks);
    const std::string* lineage = out.meta.labels.find(model::kLineageLabel);
    out.ask.lineage = lineage == nullptr ? std::string(model::HoldAsk::kKeeps) + out.meta.uid : *lineage;
    out.ask.attempt = model::attempt_of(out.meta.labels);
    out.ask.resources = TRY(read_amounts(find(object, {"spec", "resources"})));
    out.ask.machine_class = text(object, {"spec", "machineClassRef", "name"});
    out.ask.selector = read_labels(find(object, {"spec", "poolSelector"}));
    out.ask.tolerations = read_tolerations(find(object, {"spec", "tolerations"}));
    out.ask.priority = static_cast<int32_t>(integer(object, {"spec", "priority"}));
    out.ask.group = text(object, {"spec", "group"});
    if (const auto lasts = model::parse_duration(find_string(object, {"spec", "duration"}))) out.ask.duration = *lasts;
    Asked& asked = out.asked;
    asked.lineage = out.ask.lineage;
    asked.selector = out.ask.selector;
    asked.tolerations = out.ask.tolerations;
    asked.pinned = split(out.meta.annotations.get(kPinnedPools));
    asked.within = within_of(out.meta.annotations);
    asked.for_machine = !out.ask.keeps();
    asked.origin = !out.brokered;
    asked.pools = names(object, {"spec", "pools"});
    asked.commit = text(object, {"spec", "commit"});
    out.has_status = find(object, {"status", "pools"}) != nullptr;
    for (const auto& entry : list(object, {"status", "pools"})) {
        asked.entries.push_back({text(entry, {"name"}), read_answer(entry)});
    }
    if (const Json* status = find(object, {"status"})) {
        asked.told = read_answer(*status);
        out.has_answer = status->is_object();
    }
    return out;
}

Result<MachineClass> read_machine_class(const Json& object) {
    return MachineClass{meta_of(object), TRY(read_amounts(find(object, {"capabilities"})))};
}

Result<Pool> read_pool(const Json& object) {
    Pool out;
    const auto meta = meta_of(object);
    out.name = meta.name;
    out.labels = meta.labels;
    for (const auto& taint : list(object, {"spec", "taints"})) {
        out.taints.push_back({text(taint, {"key"}), text(taint, {"value"}), text(taint, {"effect"})});
    }
    out.ready = !meta.deleted;
    for (const auto& condition : list(object, {"status", "conditions"})) {
        if (find_string(condition, {"type"}) == "Ready" && find_string(condition, {"status"}) != "True")
            out.ready = false;
    }
    return out;
}

JsonObject answer_document(const model::HoldAnswer& answer) {
    JsonObject out{{"state", model::name_of(answer.state)}};
    // Nothing of an earlier answer stays: a merge removes what is null.
    out["reason"] = answer.reason == model::HoldReason::None ? Json() : Json(model::name_of(answer.reason));
    out["score"] = answer.score == 0 ? Json() : Json(answer.score);
    out["lease"] = answer.lease ? Json(model::duration_text(*answer.lease)) : Json();
    out["committed"] = answer.committed ? Json(true) : Json();
    return out;
}

model::HoldState state_at(const Reservation& reservation, const PoolEntry& entry) {
    const auto& pools = reservation.asked.pools;
    const bool asked = pools.empty() || std::find(pools.begin(), pools.end(), entry.name) != pools.end();
    const bool given_back = entry.answer.state == model::HoldState::Accepted && !asked;
    return given_back ? model::HoldState::Released : entry.answer.state;
}

JsonObject entry_document(const PoolEntry& entry) {
    JsonObject out{{"name", entry.name}};
    for (const auto& member : answer_document(entry.answer)) {
        if (!member.value().is_null()) out[member.key()] = member.value();
    }
    return out;
}

Asked asked_for(const Machine& machine) {
    Asked out;
    out.lineage = machine.lineage;
    out.selector = machine.selector;
    out.tolerations = machine.tolerations;
    out.pinned = machine.pinned;
    return out;
}

Json asking(const Reservation& reservation, const std::vector<std::string>& pools) {
    JsonArray names;
    for (const auto& pool : pools) names.emplace_back(pool);
    JsonObject out{{"spec", JsonObject{{"pools", std::move(names)}}}};
    if (!reservation.labelled) return out;
    JsonObject labels;
    for (const auto& pool : reservation.asked.pools) labels[pool_label(pool)] = Json();
    for (const auto& pool : pools) labels[pool_label(pool)] = "";
    out["metadata"] = JsonObject{{"labels", std::move(labels)}};
    return out;
}

Json reservation_document(const std::string& name, const Machine& machine, const model::Amounts& resources,
                          const std::vector<std::string>& pools, base::Duration within) {
    JsonObject amounts;
    for (const auto& [resource, amount] : resources) amounts[resource] = amount.text();
    JsonArray names;
    for (const auto& pool : pools) names.emplace_back(pool);
    JsonObject spec{{"resources", std::move(amounts)}, {"pools", std::move(names)}};
    if (!machine.machine_class.empty()) spec["machineClassRef"] = JsonObject{{"name", machine.machine_class}};
    JsonObject selector;
    for (const auto& [key, value] : machine.selector) selector[key] = value;
    if (!selector.empty()) spec["poolSelector"] = std::move(selector);
    JsonArray tolerations;
    for (const auto& each : machine.tolerations) {
        tolerations.push_back(
            JsonObject{{"key", each.key}, {"operator", each.op}, {"value", each.value}, {"effect", each.effect}});
    }
    if (!tolerations.empty()) spec["tolerations"] = std::move(tolerations);
    JsonObject labels{{model::kLineageLabel, machine.lineage},
                      {model::kAttemptLabel, std::to_string(machine.attempt)},
                      {kAsks, kByLabel}};
    for (const auto& pool : pools) labels[pool_label(pool)] = "";
    JsonObject meta{{"name", name}, {"namespace", machine.meta.ns}, {"labels", std::move(labels)}};
    const auto pinned = machine.meta.annotations.find(kPinnedPools);
    JsonObject annotations{{kWithin, model::duration_text(within)}};
    if (pinned != nullptr) annotations[kPinnedPools] = *pinned;
    meta["annotations"] = std::move(annotations);
    return JsonObject{{"apiVersion", "core.ironcore.dev/v1alpha1"},
                      {"kind", "Reservation"},
                      {"metadata", std::move(meta)},
                      {"spec", std::move(spec)}};
}

model::Amounts needs(const Machine& machine, const MachineClass& machine_class) {
    model::Amounts out = machine.resources.value_or(machine_class.capabilities);
    if (!machine.resources) {
        for (const auto& [name, amount] : machine.own) out[name] += amount;
    }
    // A class may say that it has none of something: that is not asked for.
    std::erase_if(out, [](const auto& entry) { return entry.second.is_zero(); });
    return out;
}

// 64 bits of FNV-1a, as 13 characters that a name may have.
std::string short_hash(std::string_view words) {
    uint64_t h = 1469598103934665603ULL;
    for (const char c : words) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    h ^= h >> 29;
    std::string out;
    for (int i = 0; i < 13; ++i, h >>= 5) out += "0123456789abcdefghijklmnopqrstuv"[h & 31];
    return out;
}

std::string label_value(const std::string& text) {
    return text.size() <= 63 ? text : short_hash(text);
}

std::string pool_label(const std::string& pool) {
    return "pool.berth.dev/" + label_value(pool);
}

}  // namespace berth::fleet
