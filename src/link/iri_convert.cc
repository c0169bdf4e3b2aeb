#include "link/iri_convert.h"

#include <fmt/format.h>

namespace berth::link {
namespace {

using model::HoldReason;
using model::HoldState;

constexpr size_t kMostResources = 128;

void put_meta(const model::IriMeta& meta, ::meta::v1alpha1::ObjectMetadata& out) {
    out.set_id(meta.id);
    put_map(meta.annotations, *out.mutable_annotations());
    put_map(meta.labels, *out.mutable_labels());
    out.set_generation(meta.generation);
    out.set_created_at(meta.created_at);
    out.set_deleted_at(meta.deleted_at);
}

model::IriMeta read_meta(const ::meta::v1alpha1::ObjectMetadata& meta) {
    return {
        meta.id(),        read_map(meta.annotations()), read_map(meta.labels()), meta.generation(), meta.created_at(),
        meta.deleted_at()};
}

iri::ReservationState state_of(HoldState state, bool three) {
    switch (state) {
        case HoldState::Accepted:
            return iri::RESERVATION_STATE_ACCEPTED;
        case HoldState::Bound:
            return three ? iri::RESERVATION_STATE_ACCEPTED : iri::RESERVATION_STATE_BOUND;
        case HoldState::Rejected:
        case HoldState::Released:
            return iri::RESERVATION_STATE_REJECTED;
        case HoldState::Lost:
            return three ? iri::RESERVATION_STATE_REJECTED : iri::RESERVATION_STATE_LOST;
        case HoldState::Pending:
        case HoldState::NoReply:
            return iri::RESERVATION_STATE_PENDING;
    }
    return iri::RESERVATION_STATE_PENDING;
}

HoldState state_of(iri::ReservationState state) {
    switch (state) {
        case iri::RESERVATION_STATE_ACCEPTED:
            return HoldState::Accepted;
        case iri::RESERVATION_STATE_REJECTED:
            return HoldState::Rejected;
        case iri::RESERVATION_STATE_BOUND:
            return HoldState::Bound;
        case iri::RESERVATION_STATE_LOST:
            return HoldState::Lost;
        default:
            return HoldState::Pending;
    }
}

Result<model::Amounts> read_amounts(const iri::ReservationSpec& spec) {
    model::Amounts out;
    if (static_cast<size_t>(spec.resources_size()) > kMostResources)
        return base::bad_request(
            fmt::format("a reservation names {} resources, at most {} may be", spec.resources_size(), kMostResources));
    for (const auto& [name, bytes] : spec.resources()) {
        iri::Quantity text;
        if (!text.ParseFromString(bytes))
            return base::bad_request(fmt::format("resource \"{}\" is no serialised Quantity", name));
        const auto amount = Quantity::parse(text.string());
        if (!amount || amount->is_negative())
            return base::bad_request(fmt::format("resource \"{}\": \"{}\" is no amount above 0", name, text.string()));
        out.emplace(name, *amount);
    }
    return out;
}

}  // namespace

void put(const model::IriVolume& volume, iri::Volume& out) {
    out.set_name(volume.name);
    out.set_device(volume.device);
    if (volume.local_disk_bytes >= 0) {
        out.mutable_local_disk()->set_size_bytes(volume.local_disk_bytes);
        if (!volume.local_disk_image.empty())
            out.mutable_local_disk()->mutable_image()->set_image(volume.local_disk_image);
    }
    if (volume.driver.empty()) return;
    auto& to = *out.mutable_connection();
    to.set_driver(volume.driver);
    to.set_handle(volume.handle);
    put_map(volume.attributes, *to.mutable_attributes());
    for (const auto& [key, value] : volume.secret_data) (*to.mutable_secret_data())[key] = value;
    for (const auto& [key, value] : volume.encryption_data) (*to.mutable_encryption_data())[key] = value;
    to.set_effective_storage_bytes(volume.effective_storage_bytes);
}

model::IriVolume read(const iri::Volume& volume) {
    model::IriVolume out;
    out.name = volume.name();
    out.device = volume.device();
    if (volume.has_local_disk()) out.local_disk_bytes = volume.local_disk().size_bytes();
    out.local_disk_image = volume.local_disk().image().image();
    const auto& from = volume.connection();
    out.driver = from.driver();
    out.handle = from.handle();
    out.attributes = read_map(from.attributes());
    for (const auto& [key, value] : from.secret_data()) out.secret_data.emplace_back(key, value);
    for (const auto& [key, value] : from.encryption_data()) out.encryption_data.emplace_back(key, value);
    out.effective_storage_bytes = from.effective_storage_bytes();
    return out;
}

void put(const model::IriNetworkInterface& nic, iri::NetworkInterface& out) {
    out.set_name(nic.name);
    out.set_network_id(nic.network_id);
    for (const auto& ip : nic.ips) out.add_ips(ip);
    put_map(nic.attributes, *out.mutable_attributes());
}

model::IriNetworkInterface read(const iri::NetworkInterface& nic) {
    return {nic.name(), nic.network_id(), {nic.ips().begin(), nic.ips().end()}, read_map(nic.attributes())};
}

void put(const model::IriMachine& machine, iri::Machine& out) {
    put_meta(machine.meta, *out.mutable_metadata());
    auto& spec = *out.mutable_spec();
    spec.set_power(machine.on ? iri::POWER_ON : iri::POWER_OFF);
    spec.set_class_(machine.machine_class);
    spec.set_ignition_data(machine.ignition);
    for (const auto& volume : machine.volumes) put(volume, *spec.add_volumes());
    for (const auto& nic : machine.network_interfaces) put(nic, *spec.add_network_interfaces());
    if (!machine.hostname.empty()) spec.mutable_guest_config()->set_hostname(machine.hostname);
    auto& status = *out.mutable_status();
    status.set_observed_generation(machine.observed_generation);
    status.set_state(static_cast<iri::MachineState>(machine.state));
    status.set_image_ref(machine.image_ref);
    if (machine.state == model::IriMachineState::Pending) return;
    for (const auto& volume : machine.volumes) {
        auto& to = *status.add_volumes();
        to.set_name(volume.name);
        to.set_handle(volume.handle.empty() ? machine.meta.id + "/" + volume.name : volume.handle);
        to.set_state(iri::VOLUME_ATTACHED);
    }
    for (const auto& nic : machine.network_interfaces) {
        auto& to = *status.add_network_interfaces();
        to.set_name(nic.name);
        to.set_handle(machine.meta.id + "/" + nic.name);
        to.set_state(iri::NETWORK_INTERFACE_ATTACHED);
    }
}

model::IriMachine read(const iri::Machine& machine) {
    model::IriMachine out;
    out.meta = read_meta(machine.metadata());
    const auto& spec = machine.spec();
    out.on = spec.power() != iri::POWER_OFF;
    out.machine_class = spec.class_();
    out.ignition = spec.ignition_data();
    for (const auto& volume : spec.volumes()) out.volumes.push_back(read(volume));
    for (const auto& nic : spec.network_interfaces()) out.network_interfaces.push_back(read(nic));
    out.hostname = spec.guest_config().hostname();
    const auto& status = machine.status();
    out.observed_generation = status.observed_generation();
    const int state = status.state();
    if (state >= 0 && state <= 5) out.state = static_cast<model::IriMachineState>(state);
    out.image_ref = status.image_ref();
    return out;
}

void put(const model::IriReservation& reservation, bool three_states, iri::Reservation& out) {
    put_meta(reservation.meta, *out.mutable_metadata());
    auto& spec = *out.mutable_spec();
    const auto& ask = reservation.ask;
    for (const auto& [name, amount] : ask.resources) {
        iri::Quantity text;
        text.set_string(amount.text());
        (*spec.mutable_resources())[name] = text.SerializeAsString();
    }
    spec.set_lineage(ask.lineage);
    spec.set_attempt(ask.attempt);
    spec.set_class_(ask.machine_class);
    put_map(ask.selector, *spec.mutable_selector());
    for (const auto& each : ask.tolerations) {
        auto& to = *spec.add_tolerations();
        to.set_key(each.key);
        to.set_operator_(each.op);
        to.set_value(each.value);
        to.set_effect(each.effect);
    }
    spec.set_priority(ask.priority);
    spec.set_group(ask.group);
    if (ask.duration) spec.set_ttl_seconds(std::chrono::ceil<std::chrono::seconds>(*ask.duration).count());
    for (const auto& pool : ask.pools) spec.add_pools(pool);
    auto& status = *out.mutable_status();
    const auto& answer = reservation.answer;
    status.set_state(state_of(answer.state, three_states));
    if (answer.state == HoldState::NoReply) {
        status.set_reason("NoReply");
    } else {
        status.set_reason(std::string(name_of(answer.reason)));
    }
    status.set_score(answer.score);
    // Whole seconds, rounded down: never more than there is; a last part of a second counts as one.
    if (answer.lease)
        status.set_lease_seconds(std::max<int64_t>(1, std::chrono::floor<std::chrono::seconds>(*answer.lease).count()));
    status.set_committed(answer.committed);
    status.set_provider_epoch(reservation.epoch);
    status.set_sequence(reservation.sequence);
}

Result<model::IriReservation> read(const iri::Reservation& reservation) {
    model::IriReservation out;
    out.meta = read_meta(reservation.metadata());
    const auto& spec = reservation.spec();
    auto& ask = out.ask;
    ask.resources = TRY(read_amounts(spec));
    ask.lineage = spec.lineage();
    ask.attempt = std::max<uint64_t>(1, spec.attempt());
    ask.machine_class = spec.class_();
    ask.selector = read_map(spec.selector());
    for (const auto& each : spec.tolerations())
        ask.tolerations.push_back({each.key(), each.operator_(), each.value(), each.effect(), {}});
    ask.priority = spec.priority();
    ask.group = spec.group();
    if (spec.ttl_seconds() > 0)
        ask.duration = std::chrono::seconds(std::min<int64_t>(spec.ttl_seconds(), 4'000'000'000));
    ask.pools.assign(spec.pools().begin(), spec.pools().end());
    const auto& status = reservation.status();
    out.answer.state = status.reason() == "NoReply" ? HoldState::NoReply : state_of(status.state());
    out.answer.reason = model::hold_reason(status.reason());
    out.answer.score = std::clamp(status.score(), 0, 10);
    if (status.lease_seconds() > 0)
        out.answer.lease = std::chrono::seconds(std::min<int64_t>(status.lease_seconds(), 4'000'000'000));
    out.answer.committed = status.committed();
    out.epoch = status.provider_epoch();
    out.sequence = status.sequence();
    return out;
}

void put(const model::IriEvent& event, event::v1alpha1::Event& out) {
    auto& spec = *out.mutable_spec();
    put_meta(event.about, *spec.mutable_involved_object_meta());
    spec.set_reason(event.reason);
    spec.set_message(event.message);
    spec.set_type(event.type);
    spec.set_event_time(event.seconds);
    spec.set_action(event.action);
}

model::IriEvent read(const event::v1alpha1::Event& event) {
    const auto& spec = event.spec();
    return {read_meta(spec.involved_object_meta()),
            spec.reason(),
            spec.message(),
            spec.type(),
            spec.action(),
            spec.event_time()};
}

void put(const model::IriClassStatus& status, iri::MachineClassStatus& out) {
    out.mutable_machine_class()->set_name(status.name);
    auto& resources = *out.mutable_machine_class()->mutable_capabilities()->mutable_resources();
    for (const auto& [name, amount] : status.capabilities) resources[name] = amount.value();
    out.set_quantity(status.quantity);
}

model::IriClassStatus read(const iri::MachineClassStatus& status) {
    model::IriClassStatus out;
    out.name = status.machine_class().name();
    out.quantity = status.quantity();
    for (const auto& [name, amount] : status.machine_class().capabilities().resources())
        out.capabilities[name] = Quantity::from_value(amount);
    return out;
}

}  // namespace berth::link
