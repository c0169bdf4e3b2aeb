#include "run/fleet_broker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace berth::run {
namespace {

using fleet::kMachines;
using fleet::kReservations;
using link::RuntimeChange;
using model::HoldAnswer;
using model::HoldReason;
using model::HoldState;
using model::IriMachine;
using model::IriReservation;
using Verb = model::Write::Verb;

constexpr base::Duration kForgetEvery = std::chrono::seconds(10);

Error trouble(const Result<link::Reply>& reply) {
    if (!reply) return reply.error();
    const Reason reason = reply->code == 404   ? Reason::NotFound
                          : reply->code == 409 ? Reason::Conflict
                          : reply->code == 422 ? Reason::Invalid
                                               : Reason::ServiceUnavailable;
    return {reason, fmt::format("the layer's server answered {}: {}", reply->code, reply->body)};
}

Error not_here(std::string_view what, std::string_view id) {
    return base::not_found(fmt::format("{} {} is not known", what, id));
}

Json volumes_of(const IriMachine& machine) {
    JsonArray out;
    for (const auto& each : machine.volumes) out.push_back(fleet::volume_document(each));
    return JsonObject{{"volumes", std::move(out)}};
}

Json interfaces_of(const IriMachine& machine) {
    JsonArray out;
    for (const auto& each : machine.network_interfaces) out.push_back(fleet::interface_document(each));
    return JsonObject{{"networkInterfaces", std::move(out)}};
}

}  // namespace

FleetBroker::FleetBroker(Doors doors, fleet::BrokerPlace place, Times times)
    : FleetBroker(std::move(doors), std::move(place), times, Shown{}) {}

FleetBroker::FleetBroker(Doors doors, fleet::BrokerPlace place, Times times, Shown shown)
    : ServedRuntime(doors.wake),
      session_(std::move(doors.server), doors.wake),
      place_(std::move(place)),
      times_(times),
      shown_(std::move(shown)) {
    for (const char* resource : {fleet::kMachineClasses, fleet::kMachinePools, kReservations, kMachines})
        session_.follow(resource, fleet_resource(resource));
}

void FleetBroker::turn(const Moment& now) {
    now_ = now;
    next_ = now_.now + kFleetLongestWait;
    session_.answers([](const Sent& sent, const Reply& reply) { sent.take(reply); });
    session_.hear([this](const std::string& resource, const link::FeedEvent& event) { take(resource, event); });
    inbox().run();
    if (stopping_ || !session_.synced()) return;
    for (const auto& work : std::exchange(early_, {})) work();
    end_leases();
}

void FleetBroker::take(const std::string& resource, const link::FeedEvent& event) {
    const auto document = fleet_document(event);
    if (!document) return;
    const bool put = event.type == link::FeedEvent::Type::Put;
    const auto name = fleet::meta_of(*document).name;
    if (resource == kMachines) {
        take_machine(*document, put);
    } else if (resource == fleet::kMachinePools) {
        pools_.erase(name);
        if (put) pools_.emplace(name, *document);
    } else if (resource == fleet::kMachineClasses) {
        classes_.erase(name);
        auto read = fleet::read_machine_class(*document);
        if (put && read) classes_.emplace(name, std::move(*read));
    } else {
        take_reservation(*document, put);
    }
}

void FleetBroker::begin_lease(Held& held) {
    held.until = now_.now + (held.object.asked.commit.empty() ? times_.hold : times_.committed);
    leases_.at(held.object.meta.name, held.until);
}

void FleetBroker::take_reservation(const Json& document, bool put) {
    const auto meta = fleet::meta_of(document);
    if (meta.ns != place_.ns) return;
    const auto known = held_.find(meta.name);
    if (!put) {
        if (known == held_.end()) return;
        const bool news = !known->second.released;
        RuntimeChange gone{RuntimeChange::What::Gone, iri_of(known->second), {}};
        held_.erase(known);
        ended_[meta.name] = now_.now + times_.tombstone;
        return news ? tell(gone) : void();
    }
    auto read = fleet::read_reservation(document);
    if (!read || !read->brokered) return;
    Held& held = held_[meta.name];
    const bool fresh = held.object.meta.uid != read->meta.uid;
    const bool commits = held.object.asked.commit != read->asked.commit;
    if (fresh) held = {};
    if (fresh) held.said = HoldAnswer{};  // the answer to the call that made it
    held.object = std::move(*read);
    if (fresh || commits) begin_lease(held);
    // Most changes are the layer's own affair.
    // What was promised upward and is decided anew here is lost: an attempt does not go back.
    const bool anew = fleet::upward(held.object.asked).state == HoldState::Pending;
    held.lost = held.lost || (held.promised && anew);
    auto answer = iri_of(held).answer;
    answer.lease.reset();
    held.promised = held.promised || answer.state == HoldState::Accepted;
    if (std::exchange(held.said, answer) != answer) tell({RuntimeChange::What::Reservation, iri_of(held), {}});
}

void FleetBroker::take_machine(const Json& document, bool put) {
    const auto meta = fleet::meta_of(document);
    if (meta.ns != place_.ns) return;
    if (!put) {
        const auto known = machines_.find(meta.name);
        if (known == machines_.end()) return;
        // Who waits for its end asks again.
        RuntimeChange change{
            RuntimeChange::What::Machine, {}, fleet::iri_of(known->second.object, known->second.document)};
        change.machine.meta.deleted_at = now_.wall.nanos;
        change.machine.state = model::IriMachineState::Terminated;
        if (const auto ignition = fleet::ignition_ref(known->second.document)) {
            const JsonObject options{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}};
            send({Verb::Delete, "secrets", "v1", place_.ns, ignition->name, "", options}, [](const Reply&) {});
        }
        machines_.erase(known);
        return tell(change);
    }
    auto read = fleet::read_machine(document);
    if (!read || !read->brokered) return;
    Placed& machine = machines_[meta.name];
    machine.object = std::move(*read);
    machine.document = document;
    auto now = fleet::iri_of(machine.object, machine.document);
    if (std::exchange(machine.said, now) != now) tell({RuntimeChange::What::Machine, {}, std::move(now)});
}

IriReservation FleetBroker::iri_of(const Held& held) const {
    IriReservation out = fleet::iri_of(held.object);
    out.answer = fleet::upward(held.object.asked);
    if (held.lost && out.answer.state != HoldState::Bound) out.answer = HoldAnswer{HoldState::Lost};
    // The lease that goes up is the layer's own: what is below is renewed by those below as long as this lives.
    const bool live = out.answer.state == HoldState::Accepted;
    out.answer.lease.reset();
    if (live && !held.object.ask.keeps()) out.answer.lease = std::max<base::Duration>(held.until - now_.now, {});
    return out;
}

void FleetBroker::tell_all() {
    for (const auto& heard : take_fresh()) {
        for (const auto& [name, held] : held_) tell_one(*heard, {RuntimeChange::What::Reservation, iri_of(held), {}});
        for (const auto& [name, machine] : machines_)
            tell_one(*heard, {RuntimeChange::What::Machine, {}, fleet::iri_of(machine.object, machine.document)});
    }
}

// What nobody above renews any more is given back.
void FleetBroker::end_leases() {
    for (const auto& name : leases_.take(now_.now)) {
        const auto known = held_.find(name);
        if (known == held_.end()) continue;
        Held& held = known->second;
        if (held.deleting || held.object.meta.deleted || held.object.ask.keeps()) continue;
        if (held.until > now_.now) {
            leases_.at(name, held.until);
            continue;
        }
        held.deleting = true;
        base::log_warning("A reservation is given back: nobody above renews it", {{"reservation", name}});
        do_delete(kReservations, held.object.meta, [](const Result<bool>&) {});
    }
    if (const auto next = leases_.next()) next_ = std::min(next_, *next);
    if (now_.now < forget_at_) return;
    forget_at_ = now_.now + kForgetEvery;
    for (auto* map : {&ended_, &removed_})
        std::erase_if(*map, [&](const auto& each) { return each.second <= now_.now; });
}

void FleetBroker::send(model::Write write, std::function<void(const Reply&)> take) {
    session_.send(request_for(std::move(write)), {std::move(take)});
}

void FleetBroker::do_delete(const std::string& resource, const model::Meta& meta, link::Answered<bool> answer) {
    send(fleet_delete(resource, meta), [answer = std::move(answer)](const Reply& reply) {
        if (!reply || !reply->ok()) return answer(trouble(reply));
        answer(true);
    });
}

// --- Reservations.

void FleetBroker::create_reservation(IriReservation wanted, link::Answered<IriReservation> answer) {
    serve([this, wanted = std::move(wanted), answer = std::move(answer)] { do_create(wanted, answer); });
}

void FleetBroker::do_create(IriReservation wanted, link::Answered<IriReservation> answer) {
    if (wanted.ask.lineage.empty()) wanted.ask.lineage = fleet::lineage_of(wanted.meta, fleet::kReservationUid);
    if (wanted.ask.lineage.empty())
        return answer(
            base::bad_request(fmt::format("a reservation needs a lineage or the label {}", fleet::kReservationUid)));
    const std::string name = fleet::brokered_reservation_name(wanted.ask.lineage, wanted.ask.attempt);
    const auto known = held_.find(name);
    if (known != held_.end()) return answer(iri_of(known->second));
    wanted.meta.id = name;
    // Of one lineage the names begin alike.
    const std::string first = fleet::brokered_reservation_name(wanted.ask.lineage, 0);
    const auto prefix = first.substr(0, first.size() - 1);
    bool later = false;
    for (auto it = held_.lower_bound(prefix); it != held_.end() && it->first.starts_with(prefix); ++it)
        later = later || it->second.object.ask.attempt > wanted.ask.attempt;
    if (later || ended_.contains(name)) {
        wanted.answer = HoldAnswer{HoldState::Rejected, HoldReason::Fenced};
        return answer(wanted);
    }
    Json object = fleet::brokered_reservation(wanted, place_);
    wanted.answer = HoldAnswer{};
    send({Verb::Create, kReservations, fleet::kVersion, place_.ns, "", "", std::move(object)},
         [wanted, answer = std::move(answer)](const Reply& reply) {
             const bool there = reply && (reply->ok() || reply->code == 409);
             if (!there) return answer(trouble(reply));
             auto made = wanted;
             made.sequence = reply->ok() ? reply->revision : 0;
             answer(std::move(made));
         });
}

void FleetBroker::list_reservations(model::IriFilter filter, link::Answered<std::vector<IriReservation>> answer) {
    serve([this, filter = std::move(filter), answer = std::move(answer)] {
        std::vector<IriReservation> out;
        for (const auto& [name, held] : held_) {
            auto each = iri_of(held);
            if (filter.matches(each.meta)) out.push_back(std::move(each));
        }
        answer(std::move(out));
    });
}

void FleetBroker::delete_reservation(std::string id, link::Answered<bool> answer) {
    serve([this, id = std::move(id), answer = std::move(answer)] {
        ended_[id] = now_.now + times_.tombstone;
        const auto known = held_.find(id);
        if (known == held_.end()) return answer(not_here("reservation", id));
        known->second.released = true;
        do_delete(kReservations, known->second.object.meta, answer);
    });
}

void FleetBroker::renew_reservation(std::string id, link::Answered<IriReservation> answer) {
    serve([this, id = std::move(id), answer = std::move(answer)] {
        const auto known = held_.find(id);
        if (known == held_.end() || known->second.deleting) return answer(not_here("reservation", id));
        begin_lease(known->second);
        answer(iri_of(known->second));
    });
}

void FleetBroker::confirm_reservation(std::string id, uint64_t attempt, link::Answered<IriReservation> answer) {
    serve([this, id = std::move(id), attempt, answer = std::move(answer)] { do_confirm(id, attempt, answer); });
}

// The layer's own hold is committed first; that it is, comes by the watch.
void FleetBroker::do_confirm(const std::string& id, uint64_t attempt, const link::Answered<IriReservation>& answer) {
    const auto known = held_.find(id);
    if (known == held_.end() || known->second.deleting) return answer(not_here("reservation", id));
    Held& held = known->second;
    if (held.object.ask.attempt != attempt)
        return answer(base::conflict(
            fmt::format("reservation {}: attempt {} is held, not {}", id, held.object.ask.attempt, attempt)));
    const auto& pools = held.object.asked.pools;
    const bool accepted = iri_of(held).answer.state == HoldState::Accepted && pools.size() == 1;
    if (!held.object.asked.commit.empty() || !accepted) return answer(iri_of(held));
    // Its pool is the only one, still; what its layer's scheduler says of it meanwhile is in nobody's way.
    const JsonArray steps{
        JsonObject{{"op", "test"}, {"path", "/spec/pools"}, {"value", JsonArray{Json(pools.front())}}},
        JsonObject{{"op", "add"}, {"path", "/spec/commit"}, {"value", pools.front()}}};
    auto write = fleet_write(Verb::JsonPatch, kReservations, held.object.meta, steps);
    send(std::move(write), [said = iri_of(held), answer](const Reply& reply) {
        if (!reply || !reply->ok()) return answer(trouble(reply));
        answer(said);
    });
}

// --- Machines.

void FleetBroker::list_machines(model::IriFilter filter, link::Answered<std::vector<IriMachine>> answer) {
    serve([this, filter = std::move(filter), answer = std::move(answer)] {
        std::vector<IriMachine> out;
        for (const auto& [name, machine] : machines_) {
            auto each = fleet::iri_of(machine.object, machine.document);
            if (filter.matches(each.meta)) out.push_back(std::move(each));
        }
        answer(std::move(out));
    });
}

void FleetBroker::create_machine(IriMachine wanted, link::Answered<IriMachine> answer) {
    serve([this, wanted = std::move(wanted), answer = std::move(answer)] { do_create_machine(wanted, answer); });
}

void FleetBroker::do_create_machine(IriMachine wanted, link::Answered<IriMachine> answer) {
    const std::string lineage = fleet::lineage_of(wanted.meta, fleet::kMachineUid);
    if (lineage.empty())
        return answer(base::bad_request(
            fmt::format("a machine needs the label {} or {}", model::kLineageLabel, fleet::kMachineUid)));
    const std::string name = fleet::brokered_machine_name(lineage);
    const uint64_t attempt = model::attempt_of(wanted.meta.labels);
    const auto known = machines_.find(name);
    if (known != machines_.end()) {
        const auto& machine = known->second.object;
        if (machine.meta.deleted || machine.attempt != attempt)
            return answer(base::conflict(fmt::format("machine {}: attempt {} is here still", name, machine.attempt)));
        return answer(fleet::iri_of(machine, known->second.document));
    }
    if (removed_.contains(fmt::format("{}.{}", name, attempt)))
        return answer(base::conflict(fmt::format("machine {}: attempt {} was deleted", name, attempt)));
    wanted.meta.id = name;
    if (wanted.ignition.empty()) return make_machine(wanted, answer);
    send({Verb::Create, "secrets", "v1", place_.ns, "", "", fleet::brokered_ignition(wanted, place_)},
         [this, wanted, answer = std::move(answer)](const Reply& reply) {
             const bool there = reply && (reply->ok() || reply->code == 409);
             if (!there) return answer(trouble(reply));
             make_machine(wanted, answer);
         });
}

void FleetBroker::make_machine(const IriMachine& wanted, const link::Answered<IriMachine>& answer) {
    Json object = fleet::brokered_machine(wanted, place_);
    send({Verb::Create, kMachines, fleet::kVersion, place_.ns, "", "", std::move(object)},
         [wanted, answer](const Reply& reply) {
             const bool there = reply && (reply->ok() || reply->code == 409);
             if (!there) return answer(trouble(reply));
             IriMachine out = wanted;
             out.state = model::IriMachineState::Pending;
             answer(out);
         });
}

// By its id, or by a lineage of which no machine was seen: what comes of it later is refused.
void FleetBroker::delete_machine(std::string id, link::Answered<bool> answer) {
    serve([this, id = std::move(id), answer = std::move(answer)] {
        const auto known = machines_.find(id);
        if (known == machines_.end()) {
            // "LINEAGE@ATTEMPT": nobody above has seen it here.
            const auto at = id.rfind('@');
            const auto name = at == std::string::npos ? id : fleet::brokered_machine_name(id.substr(0, at));
            removed_.try_emplace(fmt::format("{}.{}", name, at == std::string::npos ? "1" : id.substr(at + 1)),
                                 now_.now + times_.tombstone);
            const auto by_lineage = machines_.find(name);
            if (by_lineage != machines_.end()) return do_delete(kMachines, by_lineage->second.object.meta, answer);
            return answer(not_here("machine", id));
        }
        const auto& machine = known->second.object;
        removed_[fmt::format("{}.{}", id, machine.attempt)] = now_.now + times_.tombstone;
        if (machine.meta.deleted) return answer(true);
        do_delete(kMachines, machine.meta, answer);
    });
}

void FleetBroker::patch_machine(const std::string& id, Json body, link::Answered<bool> answer) {
    const auto known = machines_.find(id);
    if (known == machines_.end()) return answer(not_here("machine", id));
    send(fleet_patch(kMachines, known->second.object.meta, std::move(body)),
         [answer = std::move(answer)](const Reply& reply) {
             if (!reply || !reply->ok()) return answer(trouble(reply));
             answer(true);
         });
}

void FleetBroker::update_power(std::string id, bool on, link::Answered<bool> answer) {
    serve([this, id = std::move(id), on, answer = std::move(answer)] {
        patch_machine(id, JsonObject{{"spec", JsonObject{{"power", on ? "On" : "Off"}}}}, answer);
    });
}

void FleetBroker::update_annotations(std::string id, Labels annotations, link::Answered<bool> answer) {
    serve([this, id = std::move(id), annotations = std::move(annotations), answer = std::move(answer)] {
        JsonObject all;
        for (const auto& [key, value] : annotations) all[key] = value;
        const JsonObject ours{{fleet::kBrokerAnnotations, base::to_text(Json(all))}};
        patch_machine(id, JsonObject{{"metadata", JsonObject{{"annotations", ours}}}}, answer);
    });
}

// The Machine of this layer becomes what `edit` makes of it, unless somebody else has changed it meanwhile.
void FleetBroker::edit_machine(std::string id, Edit edit, link::Answered<bool> answer) {
    serve([this, id = std::move(id), edit = std::move(edit), answer = std::move(answer)] {
        const auto known = machines_.find(id);
        if (known == machines_.end()) return answer(not_here("machine", id));
        auto machine = fleet::iri_of(known->second.object, known->second.document);
        auto spec = edit(machine);
        if (!spec) return answer(spec.error());
        auto write = fleet_patch(kMachines, known->second.object.meta, Json(JsonObject{{"spec", std::move(*spec)}}));
        write.revision = known->second.object.meta.revision;
        send(std::move(write), [answer](const Reply& reply) {
            if (!reply || !reply->ok()) return answer(trouble(reply));
            answer(true);
        });
    });
}

void FleetBroker::put_volume(std::string id, model::IriVolume volume, bool attach, link::Answered<bool> answer) {
    const auto edit = [volume = std::move(volume), attach](IriMachine& machine) -> Result<Json> {
        const auto gone = std::erase_if(machine.volumes, [&](const auto& each) { return each.name == volume.name; });
        if (gone == 0 && !attach) return not_here("volume", volume.name);
        machine.volumes.push_back(volume);
        return volumes_of(machine);
    };
    edit_machine(std::move(id), edit, std::move(answer));
}

void FleetBroker::detach_volume(std::string id, std::string name, link::Answered<bool> answer) {
    const auto edit = [name = std::move(name)](IriMachine& machine) -> Result<Json> {
        const auto gone = std::erase_if(machine.volumes, [&](const auto& each) { return each.name == name; });
        if (gone == 0) return not_here("volume", name);
        return volumes_of(machine);
    };
    edit_machine(std::move(id), edit, std::move(answer));
}

void FleetBroker::attach_interface(std::string id, model::IriNetworkInterface nic, link::Answered<bool> answer) {
    const auto edit = [nic = std::move(nic)](IriMachine& machine) -> Result<Json> {
        std::erase_if(machine.network_interfaces, [&](const auto& each) { return each.name == nic.name; });
        machine.network_interfaces.push_back(nic);
        return interfaces_of(machine);
    };
    edit_machine(std::move(id), edit, std::move(answer));
}

void FleetBroker::detach_interface(std::string id, std::string name, link::Answered<bool> answer) {
    const auto edit = [name = std::move(name)](IriMachine& machine) -> Result<Json> {
        const auto gone =
            std::erase_if(machine.network_interfaces, [&](const auto& each) { return each.name == name; });
        if (gone == 0) return not_here("network interface", name);
        return interfaces_of(machine);
    };
    edit_machine(std::move(id), edit, std::move(answer));
}

void FleetBroker::version(link::Answered<Version> answer) {
    answer(Version{"berth-broker", "0.1.0", shown_.layer});
}

// The classes of the layer; how many machines of each there may be, where its pools publish that and so shall it.
std::vector<model::IriClassStatus> FleetBroker::class_status() const {
    std::vector<model::IriClassStatus> out;
    for (const auto& [name, known] : classes_) {
        model::IriClassStatus status{name, known.capabilities, 0};
        const std::string key = "class/machine." + name;
        for (const auto& [pool, document] : pools_) {
            const auto amounts = fleet::read_amounts(base::find(document, {"status", "allocatable"}));
            const auto found = amounts ? amounts->find(key) : model::Amounts::const_iterator{};
            if (shown_.publish_amounts && amounts && found != amounts->end()) status.quantity += found->second.value();
        }
        out.push_back(std::move(status));
    }
    return out;
}

void FleetBroker::status(link::Answered<std::vector<model::IriClassStatus>> answer) {
    serve([this, answer = std::move(answer)] { answer(class_status()); });
}

void FleetBroker::list_events(model::IriEventFilter, link::Answered<std::vector<model::IriEvent>> answer) {
    answer(std::vector<model::IriEvent>());
}

}  // namespace berth::run
