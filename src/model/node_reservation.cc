#include "model/node_reservation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/json.h"
#include "model/allocated.h"
#include "model/reservation.h"
#include "model/resource_names.h"

namespace berth::model {
namespace {

constexpr std::string_view kBatch = "kubernetes.io/batch-";
constexpr int64_t kMilliPerCore = 1000;

// One reading of the annotation: what it says, and what is wrong with it.
class Reading {
public:
    Reading(const NodeReservation& last, const Resources& machine) : last_(last), machine_(machine) {}

    void read(std::string_view text) {
        const auto document = base::parse_json(text);
        if (!document || !document->is_object()) {
            wrong("", document ? "must be an object" : document.error().message, text);
            value_ = last_;
            return;
        }
        const JsonObject& root = document->get_object();
        if (const Json* resources = root.if_contains("resources")) read_amounts(*resources);
        if (const Json* cpus = root.if_contains("reservedCPUs")) read_cpus(*cpus);
        if (const Json* policy = root.if_contains("applyPolicy")) read_policy(*policy);
        if (cpu_is_bad_) keep_last_cpu();
    }
    NodeReservation& value() { return value_; }
    std::vector<base::Cause>& faults() { return faults_; }

private:
    void wrong(std::string_view field, std::string_view what, std::string_view given) {
        const std::string where = fmt::format("metadata.annotations[{}]", kNodeReservation);
        faults_.push_back({"FieldValueInvalid",
                           fmt::format("annotation \"{}\": {}{}{}, but is {}", kNodeReservation, field,
                                       field.empty() ? "" : ": ", what, given),
                           field.empty() ? where : fmt::format("{}.{}", where, field)});
    }

    void read_amounts(const Json& resources) {
        if (resources.is_null()) return;
        if (!resources.is_object()) {
            wrong("resources", "must be an object", base::to_text(resources));
            value_.amounts = last_.amounts;
            cpu_is_bad_ = true;
            return;
        }
        for (const auto& member : resources.get_object()) read_amount(member.key(), member.value());
    }

    void read_amount(std::string_view name, const Json& given) {
        const std::string field = fmt::format("resources.{}", name);
        const auto id = intern_asked_resource(name);
        if (!id) return wrong(field, id.error().message, base::to_text(given));
        const std::string text = given.is_string() ? std::string(given.get_string()) : base::to_text(given);
        const auto quantity = Quantity::parse(text);
        if (!quantity || quantity->is_negative()) {
            wrong(field, quantity ? "must not be negative" : "must be a quantity" + hint(text), base::to_text(given));
            cpu_is_bad_ = cpu_is_bad_ || *id == kCpu;
            if (last_.amounts.has(*id)) value_.amounts.set(*id, last_.amounts.get(*id));
            return;
        }
        int64_t amount = amount_of(*id, *quantity);
        // E.g. "cpus". A device may come later: its amount counts from then on.
        const bool unknown = machine_.has(kCpu) && !machine_.has(*id) && amount > 0;
        if (unknown) wrong(field, "must be a resource that the node has", base::to_text(given));
        if (machine_.has(*id) && amount > machine_.get(*id)) {
            const std::string most = quantity_text(*id, machine_.get(*id));
            wrong(field, fmt::format("must be at most the machine's {}", most), base::to_text(given));
            amount = machine_.get(*id);
        }
        value_.amounts.set(*id, amount);
    }

    // "1C" -> such as "1"
    static std::string hint(std::string_view text) {
        size_t digits = 0;
        while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits]))) ++digits;
        return digits == 0 ? "" : fmt::format(" such as \"{}\"", text.substr(0, digits));
    }

    void read_cpus(const Json& given) {
        if (given.is_null() || (given.is_string() && given.get_string().empty())) return;
        std::string fault;
        CpuIds cpus;
        if (given.is_string()) {
            cpus = read_cpu_list(std::string_view(given.get_string()), fault);
        } else {
            fault = "must be a string such as \"0-3,8\"";
        }
        const auto known = static_cast<int32_t>(machine_.get(kCpu) / kMilliPerCore);
        const auto unknown = known == 0 ? cpus.end() : std::lower_bound(cpus.begin(), cpus.end(), known);
        if (unknown != cpus.end() && fault.empty()) fault = fmt::format("the node has only CPUs 0-{}", known - 1);
        cpus.erase(unknown, cpus.end());
        if (!fault.empty()) {
            wrong("reservedCPUs", fault, base::to_text(given));
            keep_at_least_last(cpus);
        }
        cpu_is_bad_ = !fault.empty();  // the list decides, whatever the amount is like
        if (fault.empty() || !cpus.empty()) value_.cpus = std::move(cpus);
    }

    void keep_at_least_last(CpuIds& cpus) const {
        if (!last_.cpus) return;
        CpuIds joined;
        std::set_union(cpus.begin(), cpus.end(), last_.cpus->begin(), last_.cpus->end(), std::back_inserter(joined));
        cpus = std::move(joined);
    }

    // The amount and the list are two ways to say one thing: where one is bad, what the other said last still counts.
    // E.g. after "0-3" a cpu of "-4": still 4 cores.
    void keep_last_cpu() {
        const auto milli = [](const NodeReservation& of) {
            return of.cpus ? static_cast<int64_t>(of.cpus->size()) * kMilliPerCore : of.amounts.get(kCpu);
        };
        if (milli(value_) >= milli(last_)) return;
        value_.cpus = last_.cpus;
        if (last_.amounts.has(kCpu)) value_.amounts.set(kCpu, last_.amounts.get(kCpu));
    }

    void read_policy(const Json& given) {
        if (given.is_null()) return;
        const std::string text = given.is_string() ? std::string(given.get_string()) : base::to_text(given);
        value_.cpus_only = text == "ReservedCPUsOnly";
        if (value_.cpus_only || text.empty() || text == "Default") return;
        wrong("applyPolicy", "must be \"Default\" or \"ReservedCPUsOnly\"", base::to_text(given));
        value_.cpus_only = last_.cpus_only;
    }

    const NodeReservation& last_;
    const Resources& machine_;
    NodeReservation value_;
    bool cpu_is_bad_ = false;
    std::vector<base::Cause> faults_;
};

// Whole cores are kept out, so the amount is never less than those: 2500m takes 3 cores.
int64_t whole_cores(int64_t milli) {
    const int64_t cores = milli / kMilliPerCore + (milli % kMilliPerCore != 0);
    return cores > INT64_MAX / kMilliPerCore ? INT64_MAX : cores * kMilliPerCore;
}

std::string text_of(const NodeReservation& reservation) {
    if (reservation == NodeReservation()) return "";
    JsonObject out;
    if (!reservation.amounts.empty()) {
        JsonObject amounts = amounts_document(reservation.amounts);
        if (reservation.amounts.has(kPods)) amounts["pods"] = quantity_text(kPods, reservation.amounts.get(kPods));
        out["resources"] = std::move(amounts);
    }
    if (reservation.cpus) out["reservedCPUs"] = cpu_list_text(*reservation.cpus);
    if (reservation.cpus_only) out["applyPolicy"] = "ReservedCPUsOnly";
    return base::to_text(out);
}

NodeReservation last_valid(const Node& node, const Resources& machine) {
    const NodeReservation none;
    Reading reading(none, machine);
    if (const std::string* text = node.meta.annotations.find(kReservationApplied)) reading.read(*text);
    return std::move(reading.value());
}

}  // namespace

Resources NodeReservation::taken() const {
    if (cpus_only) return {};
    Resources out = amounts;
    if (cpus) out.set(kCpu, static_cast<int64_t>(cpus->size()) * kMilliPerCore);
    return out;
}

NodeView view_of(const Node& node) {
    NodeView view;
    view.allocatable = node.allocatable;
    const std::string* text = node.meta.annotations.find(kNodeReservation);
    if (!text) return view;
    const Resources& machine = node.capacity.empty() ? node.allocatable : node.capacity;
    const NodeReservation last = last_valid(node, machine);
    Reading reading(last, machine);
    reading.read(*text);
    view.reservation = std::move(reading.value());
    view.faults = std::move(reading.faults());
    view.applied = text_of(view.reservation);
    view.reservation.taken().for_each([&](ResourceId id, int64_t amount) {
        // The manager has taken batch amounts off what the node reports.
        if (!node.allocatable.has(id) || resource_name(id).starts_with(kBatch)) return;
        const int64_t has = std::max<int64_t>(0, node.allocatable.get(id));
        const int64_t held = std::min(has, id == kCpu ? whole_cores(amount) : amount);
        view.held.set(id, held);
        view.allocatable.set(id, has - held);
    });
    return view;
}

Result<NodeReservation> read_held_back(std::string_view text) {
    const NodeReservation none;
    const Resources unlimited;
    Reading reading(none, unlimited);
    reading.read(text);
    if (!reading.faults().empty()) return base::invalid(reading.faults().front().message);
    return std::move(reading.value());
}

}  // namespace berth::model
