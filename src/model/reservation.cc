#include "model/reservation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "model/node_reservation.h"
#include "model/pod_resources.h"
#include "model/read_selectors.h"
#include "model/reader.h"
#include "model/reservation_affinity.h"
#include "model/reservation_check.h"
#include "model/reservation_rules.h"
#include "model/times.h"

namespace berth::model {
namespace {

constexpr std::array<std::string_view, 5> kPhases{"Pending", "Available", "Waiting", "Succeeded", "Failed"};
constexpr int32_t kHighestPriority = INT32_MAX;
constexpr std::string_view kPriorityLabel = "koordinator.sh/priority";

// Every pod is a v1 Pod.
bool narrows(const ReservationOwner::Object& object) {
    return !object.ns.empty() || !object.name.empty() || !object.uid.empty();
}

bool narrows(const ReservationOwner::Controller& controller) {
    ReservationOwner::Controller any;
    any.controller = controller.controller;
    return controller != any;
}

// A part that narrows nothing may stand beside one that does.
void check_narrows(const Reader& from, const ReservationOwner& owner) {
    if ((owner.object && narrows(*owner.object)) || (owner.controller && narrows(*owner.controller)) ||
        (owner.labels && !owner.labels->matches_everything())) {
        return;
    }
    if (owner.object) return from["object"].wrong("would match every pod; give a namespace, name or uid");
    if (owner.controller) return from["controller"].wrong("would match every pod; name at least one field");
    if (owner.labels) return from["labelSelector"].wrong("is empty and would match every pod");
    from.wrong("needs at least one of object, controller, labelSelector");
}

ReservationOwner read_owner(const Reader& from) {
    ReservationOwner owner;
    const auto text = [](const Reader& at, std::string_view key) { return std::string(at[key].text()); };
    if (const Reader object = from["object"]; object.present()) {
        owner.object = {text(object, "apiVersion"), text(object, "kind"), text(object, "namespace"),
                        text(object, "name"), text(object, "uid")};
    }
    if (const Reader controller = from["controller"]; controller.present()) {
        owner.controller = {text(controller, "apiVersion"), text(controller, "kind"), text(controller, "namespace"),
                            text(controller, "name"),       text(controller, "uid"),  std::nullopt};
        if (const Reader flag = controller["controller"]; flag.present()) owner.controller->controller = flag.flag();
    }
    owner.labels = read_selector(from["labelSelector"]);
    check_narrows(from, owner);
    return owner;
}

void read_lifetime(const Reader& spec, Reservation& out) {
    if (const Reader ttl = spec["ttl"]; ttl.present()) {
        const auto duration = parse_duration(ttl.text());
        if (!duration) {
            ttl.wrong(duration.error().message);
        } else if (*duration < base::Duration::zero()) {
            ttl.wrong(fmt::format("must not be negative, but is {}", ttl.text()));
        } else {
            out.ttl = *duration;
        }
    }
    out.expires = read_time(spec["expires"]);
}

AllocatePolicy read_policy(const Reader& field) {
    const auto text = field.text();
    if (text == "Aligned") return AllocatePolicy::Aligned;
    if (text == "Restricted") return AllocatePolicy::Restricted;
    if (!text.empty()) field.wrong(fmt::format("must be \"Aligned\" or \"Restricted\", but is \"{}\"", text));
    return AllocatePolicy::Default;
}

ReservationPhase read_phase(const Reader& field) {
    for (size_t i = 0; i < kPhases.size(); ++i) {
        if (field.text() == kPhases[i]) return static_cast<ReservationPhase>(i);
    }
    return ReservationPhase::Pending;
}

ReservationCondition read_condition(const Reader& from) {
    const auto text = [&](std::string_view key) { return std::string(from[key].text()); };
    return {text("type"),
            text("status"),
            text("reason"),
            text("message"),
            read_time(from["lastProbeTime"]),
            read_time(from["lastTransitionTime"])};
}

void read_status(const Reader& from, ReservationStatus& out) {
    out.phase = read_phase(from["phase"]);
    out.node = from["nodeName"].text();
    out.allocatable = read_resource_list(from["allocatable"]);
    out.allocated = read_resource_list(from["allocated"]);
    const Reader current = from["currentOwners"];
    current.each([&](const Reader& item) {
        out.current_owners.push_back(
            {std::string(item["namespace"].text()), std::string(item["name"].text()), std::string(item["uid"].text())});
    });
    const Reader conditions = from["conditions"];
    conditions.each([&](const Reader& item) { out.conditions.push_back(read_condition(item)); });
    read_which(from, out.which);
}

// What labels and annotations of the object add; the first that cannot be understood ends up in `trouble`.
void read_notes(Reservation& out, std::string& trouble) {
    if (const std::string* order = out.meta.labels.find(kReservationOrder)) {
        const auto [end, error] = std::from_chars(order->data(), order->data() + order->size(), out.order);
        if (error != std::errc() || end != order->data() + order->size()) {
            trouble = fmt::format("metadata.labels[{}]: must be an integer, but is \"{}\"", kReservationOrder, *order);
        }
    }
    const auto note = [&](std::string_view key, auto read) {
        const std::string* text = out.meta.annotations.find(key);
        if (!text || !trouble.empty()) return;
        if (const Status status = read(*text); !status) {
            trouble = fmt::format("metadata.annotations[{}]: {}", key, status.error().message);
        }
    };
    note(kRestrictedOptions, [&](const std::string& text) -> Status {
        out.restricted = TRY(read_resource_names(kRestrictedOptions, text, "resources"));
        return {};
    });
    note(kNodeReservation, [&](const std::string& text) -> Status {
        out.held_back = TRY(read_held_back(text)).taken();
        return {};
    });
}

// The label's, else the highest. `field` is where the label stands.
int32_t labelled_priority(const Labels& labels, const Reader& field) {
    int32_t value = kHighestPriority;
    if (const std::string* label = labels.find(kPriorityLabel)) {
        const auto [end, error] = std::from_chars(label->data(), label->data() + label->size(), value);
        if (error != std::errc() || end != label->data() + label->size()) {
            field.wrong(fmt::format("{} must be an integer, but is \"{}\"", kPriorityLabel, *label));
        }
    }
    return value;
}

// `trouble` is "path: what is wrong", as the Reader remembers it.
Error refusal(std::string_view name, std::string_view trouble) {
    const size_t colon = std::min(trouble.find(": "), trouble.size());
    const auto what = trouble.substr(std::min(colon + 2, trouble.size()));
    const bool missing = what.starts_with("is required") || what.starts_with("needs at least");
    Error error = base::invalid(fmt::format("Reservation \"{}\": {}", name, trouble));
    error.causes.push_back({missing ? "FieldValueRequired" : "FieldValueInvalid",
                            fmt::format("{} value: {}", missing ? "Required" : "Invalid", what),
                            std::string(trouble.substr(0, colon))});
    return error;
}

std::shared_ptr<const PodSpec> read_template(const Reader& from, const Reader& object, const Meta& meta,
                                             Labels& own_labels) {
    const Reader metadata = from["metadata"];
    const Reader above = object["metadata"];
    const Reader spec = from["spec"];
    const Reader containers = spec["containers"];
    bool any = false;
    containers.each([&](const Reader&) { any = true; });
    if (!any) containers.wrong("needs at least one container");
    const Reader claims = spec["resourceClaims"];
    claims.each([&](const Reader&) { claims.wrong("cannot be reserved: Berth does not allocate resource claims"); });
    own_labels = read_labels(metadata["labels"]);
    Labels labels = own_labels;
    for (const auto& [key, value] : meta.labels) labels.set(key, value);
    Labels annotations = read_labels(metadata["annotations"]);
    for (const auto& [key, value] : meta.annotations) annotations.set(key, value);
    CoreWish cores = read_core_wish(labels, annotations);
    if (!cores.fault.empty()) metadata["annotations"].wrong(cores.fault);
    const auto ns = metadata["namespace"].text();
    const bool above_says = meta.labels.has(kPriorityLabel);
    const int32_t labelled = labelled_priority(labels, above_says ? above["labels"] : metadata["labels"]);
    const Reader priority = spec["priority"];
    auto out =
        read_pod_spec(spec, spec["no status"], meta.name, std::string(ns.empty() ? "default" : ns), std::move(labels));
    check_template(spec);
    const int64_t number = priority.integer(labelled);
    if (number != static_cast<int32_t>(number)) priority.wrong(fmt::format("must have 32 bits, but is {}", number));
    out.priority = static_cast<int32_t>(number);
    out.never_preempts = true;
    out.cores = std::move(cores);
    out.devices = read_device_wish(out.requests, annotations);
    if (!out.devices.fault.empty()) containers.wrong(out.devices.fault);
    return std::make_shared<PodSpec>(std::move(out));
}

// Nobody could lift them: a reservation is not a pod. One that is placed already keeps its place.
void check_gates(const Reader& pod_template) {
    const Reader spec = pod_template["spec"];
    const Reader gates = spec["schedulingGates"];
    gates.each([&](const Reader&) { gates.wrong("must be empty: a reservation is placed as soon as there is room"); });
}

}  // namespace

std::string_view name_of(ReservationPhase phase) {
    return kPhases[static_cast<size_t>(phase)];
}

bool same_wish(const Reservation& a, const Reservation& b) {
    const auto parts = [](const Reservation& r) {
        return std::tie(*r.spec, r.template_labels, r.meta.labels, r.owners, r.ttl, r.expires, r.pre_allocation,
                        r.allocate_once, r.unschedulable, r.policy, r.taints, r.order, r.restricted, r.held_back,
                        r.fault);
    };
    return parts(a) == parts(b);
}

bool same_purpose(const Reservation& a, const Reservation& b) {
    if (a.owners != b.owners || a.template_labels != b.template_labels) return false;
    PodSpec other = *b.spec;
    other.labels = a.spec->labels;
    other.priority = a.spec->priority;
    return *a.spec == other;
}

bool Reservation::restricts(ResourceId id) const {
    if (id == kPods) return false;
    return restricted.empty() || std::binary_search(restricted.begin(), restricted.end(), id);
}

bool Reservation::made_by_us() const {
    if (!meta.labels.has(kMadeFor) || policy != AllocatePolicy::Restricted || !allocate_once) return false;
    if (owners.size() != 1) return false;
    const ReservationOwner& owner = owners.front();
    return (owner.object && !owner.object->uid.empty()) || (owner.controller && !owner.controller->uid.empty());
}

Reservation with_priority(Reservation reservation, int32_t priority) {
    auto spec = std::make_shared<PodSpec>(*reservation.spec);
    spec->priority = priority;
    reservation.spec = std::move(spec);
    return reservation;
}

Result<Reservation> read_reservation(JsonView object) {
    std::string trouble;
    const Reader root(object, trouble);
    Reservation out;
    out.meta = read_meta(root);
    const Reader spec = root["spec"];
    const Reader status = root["status"];
    const Reader from = spec["template"];
    if (!from.present()) from.wrong("is required");
    out.spec = read_template(from, root, out.meta, out.template_labels);
    const Reader pod = from["spec"];
    if (!pod["priority"].present()) out.priority_class = pod["priorityClassName"].text();
    const Reader owners = spec["owners"];
    owners.each([&](const Reader& item) { out.owners.push_back(read_owner(item)); });
    if (out.owners.empty()) owners.wrong("needs at least one owner");
    read_lifetime(spec, out);
    out.pre_allocation = spec["preAllocation"].flag();
    out.allocate_once = spec["allocateOnce"].flag(true);
    out.unschedulable = spec["unschedulable"].flag();
    out.policy = read_policy(spec["allocatePolicy"]);
    out.taints = read_taints(spec["taints"]);
    check_taints(spec["taints"]);
    read_status(status, out);
    if (out.phase == ReservationPhase::Pending) check_gates(from);
    // As others write it down.
    if (out.which.empty() && holds_room(out)) out.which = read_which(out.meta.annotations);
    if (trouble.empty()) read_notes(out, trouble);
    if (trouble.empty()) return out;
    if (!holds_room(out) || out.node.empty()) return refusal(out.meta.name, trouble);
    out.fault = trouble;
    out.allocatable.max(out.spec->requests);
    out.allocatable.erase(kPods);
    return out;
}

}  // namespace berth::model
