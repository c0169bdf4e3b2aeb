#include "run/fleet_scheduler.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "model/times.h"

namespace berth::run {
namespace {

using fleet::Step;
using model::HoldAnswer;
using model::HoldState;
using Verb = model::Write::Verb;

constexpr base::Duration kAfterRefusal = std::chrono::milliseconds(200);
constexpr base::Duration kAfterInvalid = std::chrono::minutes(1);

std::string machine_key(const std::string& key) {
    return std::string(fleet::kMachines) + " " + key;
}

// What the layer's verdict has to say anew: leases pass by themselves, and that a hold waits stands in its entry.
bool same_answer(const HoldAnswer& a, const HoldAnswer& b) {
    return a.state == b.state && a.reason == b.reason && a.score == b.score;
}

// m-3f2ab-1: of the Machine m, its first attempt.
std::string reservation_name(const fleet::Machine& machine) {
    return fmt::format("{}-{}-{}", machine.meta.name, fleet::short_hash(machine.lineage).substr(0, 5), machine.attempt);
}

// Of a Status, what it says to people.
std::string message_in(const link::Reply& reply) {
    const auto status = base::parse_json(reply.body);
    return status ? std::string(base::find_string(*status, {"message"})) : reply.body;
}

JsonArray others_finalizers(const fleet::Machine& machine) {
    JsonArray out;
    for (const auto& each : machine.finalizers) {
        if (each != fleet::kMachineFinalizer) out.emplace_back(each);
    }
    return out;
}

// "a: Accepted, b: Rejected (Contended)": who was asked, and what each said.
std::string answers_of(const fleet::Reservation& reservation) {
    std::string out;
    for (const auto& entry : reservation.asked.entries) {
        const auto reason = model::name_of(entry.answer.reason);
        const auto state = model::name_of(fleet::state_at(reservation, entry));
        out += fmt::format("{}{}: {}{}", out.empty() ? "" : ", ", entry.name, state,
                           reason.empty() ? "" : fmt::format(" ({})", reason));
    }
    return out.empty() ? "nobody has answered" : out;
}

}  // namespace

FleetScheduler::FleetScheduler(Doors doors, fleet::RoundRules rules)
    : session_(std::move(doors.server), std::move(doors.wake)),
      recorder_(session_.server(), "berth-fleet-scheduler"),
      rules_(rules),
      metrics_(doors.metrics == nullptr ? nullptr : std::make_unique<LayerMetrics>(*doors.metrics)) {
    for (const char* resource : {fleet::kMachineClasses, fleet::kMachinePools, fleet::kReservations,
                                 fleet::kDraftReservations, fleet::kMachines}) {
        session_.follow(resource, fleet_resource(resource));
    }
    session_.follow(kLeases,
                    {"coordination.k8s.io", "v1", "leases", fmt::format("metadata.namespace={}", kPoolLeases), ""});
}

void FleetScheduler::turn(const Moment& now) {
    now_ = now;
    session_.answers([this](const Sent& sent, const Result<link::Reply>& reply) { answered(sent, reply); });
    session_.hear([this](const std::string& resource, const link::FeedEvent& event) { take(resource, event); });
    next_ = now_.now + kFleetLongestWait;
    if (stopping_ || !session_.synced()) return;
    for (const auto& lineage : agenda_.take(now_.now)) look(lineage);
    if (const auto next = agenda_.next()) next_ = std::min(next_, *next);
    if (agenda_.ready()) next_ = now_.now;
    mark_silent_pools();
}

// Its poollet says Ready again when it is back.
void FleetScheduler::mark_silent_pools() {
    for (const auto& name : pulses_.silent(now_.now)) {
        const auto pool =
            std::find_if(pools_.begin(), pools_.end(), [&](const auto& each) { return each.name == name; });
        if (pool == pools_.end() || !pool->ready) continue;
        base::log_warning("A pool has fallen silent: it is asked no more", {{"pool", name}});
        const auto at = model::time_text(now_.wall);
        const JsonObject condition{{"type", "Ready"},
                                   {"status", "Unknown"},
                                   {"reason", "MachinePoolStatusUnknown"},
                                   {"message", "its poollet has not renewed its lease"},
                                   {"lastUpdateTime", at},
                                   {"lastTransitionTime", at}};
        model::Meta meta;
        meta.name = name;
        const std::string key = fmt::format("{} {}", fleet::kMachinePools, name);
        send(fleet_patch(fleet::kMachinePools, meta,
                         JsonObject{{"status", JsonObject{{"conditions", JsonArray{condition}}}}}, "status"),
             {key});
    }
    if (const auto next = pulses_.next()) next_ = std::min(next_, *next);
}

void FleetScheduler::look_again(const std::string& lineage, std::optional<base::Instant> at) {
    if (at) agenda_.at(lineage, *at);
}

void FleetScheduler::take(const std::string& resource, const link::FeedEvent& event) {
    const auto document = fleet_document(event);
    if (!document) return;
    const auto meta = fleet::meta_of(*document);
    const std::string key = fleet_key(meta);
    const bool put = event.type == link::FeedEvent::Type::Put;
    if (resource == kLeases) {
        if (meta.ns == kPoolLeases) put ? pulses_.heard(meta.name, now_.now) : pulses_.gone(meta.name);
    } else if (resource == fleet::kMachineClasses) {
        classes_.erase(key);
        auto read = fleet::read_machine_class(*document);
        if (put && read) classes_[key] = std::move(*read);
        wake_all();
    } else if (resource == fleet::kMachinePools) {
        std::erase_if(pools_, [&](const auto& pool) { return pool.name == key; });
        gone_.erase(key);
        auto read = fleet::read_pool(*document);
        if (put && read) pools_.push_back(std::move(*read));
        wake_all();
    } else if (resource == fleet::kMachines) {
        take_machine(key, put ? &*document : nullptr);
    } else {
        take_reservation(resource, key, put ? &*document : nullptr);
    }
}

void FleetScheduler::wake_all() {
    for (const auto& [lineage, keys] : by_lineage_) agenda_.now(lineage);
    for (const auto& [lineage, key] : machine_by_lineage_) agenda_.now(lineage);
}

void FleetScheduler::take_machine(const std::string& key, const Json* document) {
    const auto known = machines_.find(key);
    if (known != machines_.end()) {
        agenda_.now(known->second.object.lineage);
        machine_by_lineage_.erase(known->second.object.lineage);
    }
    auto read = document == nullptr ? Result<fleet::Machine>(base::not_found("gone")) : fleet::read_machine(*document);
    if (document != nullptr && !read)
        base::log_warning("A Machine cannot be read", {{"machine", key}, {"error", read.error()}});
    if (!read) {
        if (known != machines_.end()) machines_.erase(known);
        return pace_.gone(machine_key(key));
    }
    pace_.seen(machine_key(key), read->meta.revision);
    agenda_.now(read->lineage);
    machine_by_lineage_[read->lineage] = key;
    Placed& placed = machines_[key];
    if (placed.object.meta.uid != read->meta.uid) {
        placed = {};
        placed.came = now_.now;
    }
    if (placed.object.attempt != read->attempt) placed.memory = {.failures = placed.memory.failures};
    placed.object = std::move(*read);
}

void FleetScheduler::take_reservation(const std::string& resource, const std::string& key, const Json* document) {
    const std::string place = resource + " " + key;
    const auto known = held_.find(place);
    if (known != held_.end()) {
        const std::string lineage = known->second.object.ask.lineage;
        agenda_.now(lineage);
        by_lineage_[lineage].erase(place);
        if (by_lineage_[lineage].empty()) by_lineage_.erase(lineage);
    }
    auto read =
        document == nullptr ? Result<fleet::Reservation>(base::not_found("gone")) : fleet::read_reservation(*document);
    if (document != nullptr && !read)
        base::log_warning("A Reservation cannot be read", {{"reservation", key}, {"error", read.error()}});
    if (!read) {
        if (known != held_.end()) held_.erase(known);
        return pace_.gone(place);
    }
    read->resource = resource;
    pace_.seen(place, read->meta.revision);
    agenda_.now(read->ask.lineage);
    by_lineage_[read->ask.lineage].insert(place);
    Held& held = held_[place];
    const bool same = held.object.meta.uid == read->meta.uid;
    if (!same) held = {.object = {}, .memory = {}, .came = now_.now, .counted = false};
    time_replies(same ? &held : nullptr, *read);
    held.object = std::move(*read);
}

// An answer that was not there before: how long it took since its pool was asked.
void FleetScheduler::time_replies(const Held* before, const fleet::Reservation& after) {
    if (before == nullptr) return;
    for (const auto& entry : after.asked.entries) {
        if (entry.answer.state == HoldState::Pending) continue;
        const auto& old = before->object.asked.entries;
        const bool news = std::none_of(old.begin(), old.end(), [&](const auto& each) {
            return each.name == entry.name && each.answer.state != HoldState::Pending;
        });
        const auto since = before->memory.asked_at.find(entry.name);
        if (news && since != before->memory.asked_at.end()) times_.add(now_.now - since->second);
    }
}

std::pair<std::string, FleetScheduler::Held*> FleetScheduler::held_for(const std::string& lineage) {
    std::pair<std::string, Held*> out{"", nullptr};
    const auto found = by_lineage_.find(lineage);
    if (found == by_lineage_.end()) return out;
    for (const auto& key : found->second) {
        Held& held = held_.at(key);
        if (out.second == nullptr || held.object.ask.attempt > out.second->object.ask.attempt) out = {key, &held};
    }
    return out;
}

// All that concerns one lineage: its reservations, and its Machine.
void FleetScheduler::look(const std::string& lineage) {
    const auto named = machine_by_lineage_.find(lineage);
    Placed* machine = named == machine_by_lineage_.end() ? nullptr : &machines_.at(named->second);
    const auto [key, held] = held_for(lineage);
    // An older attempt of ours is in nobody's way, but it holds room. So does one whose Machine is gone.
    if (const auto all = by_lineage_.find(lineage); all != by_lineage_.end()) {
        for (const auto& each : all->second) {
            const auto& object = held_.at(each).object;
            const bool left = object.for_machine() && !object.brokered && (each != key || machine == nullptr);
            if (left && !object.meta.deleted && !pace_.busy(each))
                send(fleet_delete(object.resource, object.meta), {each});
        }
    }
    fleet::Round round;
    if (held != nullptr && !held->object.meta.deleted) round = round_of(*held, key, machine != nullptr);
    if (machine == nullptr || pace_.busy(machine_key(named->second))) return;
    if (held != nullptr && pace_.busy(key)) return;
    machine->memory.pool_gone_at = pool_gone(machine->object.pool);
    if (machine->memory.pool_gone_at && !machine->object.meta.deleted)
        warn(*machine, "MachinePoolNotFound", fmt::format("machine pool {} does not exist", machine->object.pool));
    machine->memory.pool_silent = std::any_of(pools_.begin(), pools_.end(), [&](const auto& pool) {
        return pool.name == machine->object.pool && !pool.ready;
    });
    const Step step =
        fleet::next_step(machine->object, held == nullptr ? nullptr : &held->object, round, machine->memory, now_.now);
    look_again(lineage, step.next);
    act(*machine, held, key, step);
}

// Since when the pool of a Machine is no longer there.
std::optional<base::Instant> FleetScheduler::pool_gone(const std::string& pool) {
    const bool there = std::any_of(pools_.begin(), pools_.end(), [&](const auto& each) { return each.name == pool; });
    if (pool.empty() || there) return std::nullopt;
    return gone_.try_emplace(pool, now_.now).first->second;
}

// The entry of a pool that is gone, and that nothing is bound at, goes, too. True: it is being written.
bool FleetScheduler::drop_vanished(const Held& held, const std::string& key) {
    const auto& entries = held.object.asked.entries;
    for (size_t i = 0; i < entries.size(); ++i) {
        const auto& [name, answer] = entries[i];
        const bool there =
            std::any_of(pools_.begin(), pools_.end(), [&, pool = name](const auto& each) { return each.name == pool; });
        if (there || answer.state == HoldState::Bound) continue;
        const std::string path = fmt::format("/status/pools/{}", i);
        auto write = fleet_write(Verb::JsonPatch, held.object.resource, held.object.meta,
                                 JsonArray{JsonObject{{"op", "test"}, {"path", path + "/name"}, {"value", name}},
                                           JsonObject{{"op", "remove"}, {"path", path}}},
                                 "status");
        write.revision = held.object.meta.revision;
        send(std::move(write), {key});
        return true;
    }
    return false;
}

// What the layer says of a reservation, asked of further pools and told upward as far as that is due.
fleet::Round FleetScheduler::round_of(Held& held, const std::string& key, bool has_machine) {
    fleet::Round round = fleet::next_round(held.object.asked, held.memory, pools_, times_, rules_, now_.now);
    look_again(held.object.ask.lineage, round.next);
    if (round.decided && !std::exchange(held.counted, true) && metrics_) metrics_->decided(now_.now - held.came);
    if (pace_.busy(key) || drop_vanished(held, key)) return round;
    // The Machine's commitment names the one pool, too: one write for both.
    const bool accepted = round.answer.state == HoldState::Accepted || round.answer.state == HoldState::Bound;
    const bool commits = has_machine && round.decided && accepted && held.object.asked.commit.empty();
    if (round.ask && !commits) {
        ask(held, key, fleet::asking(held.object, *round.ask));
    } else if (round.decided && !commits) {
        tell_report(held, key, round.answer);
    }
    return round;
}

// Of no other state of it than this: a request that was long on its way may come after somebody has committed.
void FleetScheduler::ask(const Held& held, const std::string& key, Json body) {
    auto write = fleet_patch(held.object.resource, held.object.meta, std::move(body));
    write.revision = held.object.meta.revision;
    Sent sent{key};
    sent.revision = write.revision;
    send(std::move(write), std::move(sent));
}

void FleetScheduler::tell_report(Held& held, const std::string& key, const HoldAnswer& answer) {
    if (same_answer(held.object.asked.told, answer)) return;
    send(fleet_patch(held.object.resource, held.object.meta, JsonObject{{"status", fleet::answer_document(answer)}},
                     "status"),
         {key});
}

void FleetScheduler::reserve(Placed& placed) {
    const auto& machine = placed.object;
    const auto known = classes_.find(machine.machine_class);
    if (!machine.trouble.empty()) return warn(placed, "InvalidMachine", machine.trouble);
    if (known == classes_.end() && !machine.resources)
        return warn(placed, "MachineClassNotReady",
                    fmt::format("machine class {} does not exist", machine.machine_class));
    const auto needs = fleet::needs(machine, known == classes_.end() ? fleet::MachineClass{} : known->second);
    if (needs.empty()) return warn(placed, "InvalidMachine", "it needs nothing that a pool could have");
    const std::string name = reservation_name(machine);
    fleet::RoundMemory none;
    const auto asked = fleet::asked_for(machine);
    const auto first = fleet::next_round(asked, none, pools_, times_, rules_, now_.now).ask;
    model::Write write{Verb::Create,
                       fleet::kReservations,
                       fleet::kVersion,
                       machine.meta.ns,
                       "",
                       "",
                       fleet::reservation_document(name, machine, needs, first.value_or(std::vector<std::string>()),
                                                   fleet::whole_time(asked, rules_))};
    send(std::move(write), {machine_key(fleet_key(machine.meta)), "", "", "", true});
}

// To people, once.
void FleetScheduler::warn(Placed& placed, const std::string& reason, const std::string& words) {
    if (std::exchange(placed.said, words) == words) return;
    const auto& meta = placed.object.meta;
    tell(recorder_, {"compute.ironcore.dev/v1alpha1", "Machine", meta.ns, meta.name, meta.uid, true, reason, words},
         now_.wall);
}

void FleetScheduler::act(Placed& placed, Held* held, const std::string& held_key, const Step& step) {
    const auto& machine = placed.object;
    const std::string key = machine_key(fleet_key(machine.meta));
    switch (step.what) {
        case Step::Do::Nothing:
            break;
        case Step::Do::Reserve:
            reserve(placed);
            break;
        case Step::Do::Release:
            send(fleet_delete(held->object.resource, held->object.meta), {held_key});
            break;
        case Step::Do::Commit: {
            Json body = fleet::asking(held->object, {step.pool});
            base::object_at(body, {"spec"})["commit"] = step.pool;
            ask(*held, held_key, std::move(body));
            break;
        }
        case Step::Do::SetPool: {
            auto write =
                fleet_patch(fleet::kMachines, machine.meta,
                            JsonObject{{"spec", JsonObject{{"machinePoolRef", JsonObject{{"name", step.pool}}}}}});
            write.revision = machine.meta.revision;
            send(std::move(write), {key, fleet_key(machine.meta), "Scheduled",
                                    fmt::format("goes to pool {}; {}", step.pool, answers_of(held->object))});
            if (metrics_) metrics_->placed(now_.now - placed.came);
            break;
        }
        case Step::Do::TellLost:
            tell_report(*held, held_key, HoldAnswer{HoldState::Lost});
            break;
        case Step::Do::LetGo:
            let_go(machine);
            break;
        case Step::Do::NextAttempt:
        case Step::Do::ClearPool: {
            JsonObject labels{{model::kAttemptLabel, std::to_string(machine.attempt + 1)}};
            JsonObject body;
            if (step.what == Step::Do::ClearPool) {
                body["spec"] = JsonObject{{"machinePoolRef", Json()}};
                // By this its poollet finds it, even one that begins anew.
                if (machine.finalized && !placed.memory.pool_gone_at)
                    labels[fleet::kLeft] = fleet::label_value(machine.pool);
            }
            JsonObject meta{{"labels", std::move(labels)}};
            // The poollet of a pool that is gone takes nothing off any more.
            if (placed.memory.pool_gone_at) meta["finalizers"] = others_finalizers(machine);
            body["metadata"] = std::move(meta);
            if (metrics_) metrics_->tried_again();
            auto write = fleet_patch(fleet::kMachines, machine.meta, Json(std::move(body)));
            write.revision = machine.meta.revision;
            send(std::move(write),
                 {key, fleet_key(machine.meta), "FailedScheduling",
                  fmt::format("no pool has room ({}); it is tried again; {}", step.why.empty() ? "no answer" : step.why,
                              held == nullptr ? "" : answers_of(held->object))});
            break;
        }
    }
}

void FleetScheduler::let_go(const fleet::Machine& machine) {
    auto write = fleet_patch(fleet::kMachines, machine.meta,
                             JsonObject{{"metadata", JsonObject{{"finalizers", others_finalizers(machine)}}}});
    write.revision = machine.meta.revision;
    send(std::move(write), {machine_key(fleet_key(machine.meta))});
}

void FleetScheduler::send(model::Write write, Sent sent) {
    if (metrics_) metrics_->wrote();
    pace_.sent(sent.key);
    session_.send(request_for(std::move(write)), std::move(sent));
}

void FleetScheduler::answered(const Sent& sent, const Result<link::Reply>& reply) {
    const bool done = reply && reply->ok();
    const auto space = sent.key.find(' ');
    const auto machine = machines_.find(sent.key.substr(space + 1));
    // Of what we created the object comes by its own feed: the machine may be looked at as soon as that was seen.
    pace_.answered(sent.key, done && !sent.creates ? reply->revision : 0);
    const auto held = held_.find(sent.key);
    const std::string lineage = held != held_.end()          ? held->second.object.ask.lineage
                                : machine != machines_.end() ? machine->second.object.lineage
                                                             : "";
    if (held != held_.end()) pace_.seen(sent.key, held->second.object.meta.revision);
    if (held == held_.end() && machine != machines_.end()) pace_.seen(sent.key, machine->second.object.meta.revision);
    if (held == held_.end() && machine == machines_.end()) pace_.answered(sent.key, 0);
    // What stood in the way was heard before the answer.
    const bool newer = held != held_.end() && sent.revision != 0 && held->second.object.meta.revision > sent.revision;
    if ((done && !sent.creates) || newer) agenda_.now(lineage);
    // It exists already, or another time: whatever it is, its feed says so. What is refused as it is will be again.
    const bool invalid = sent.creates && reply && reply->code == 422;
    if (!done || sent.creates) look_again(lineage, now_.now + (invalid ? kAfterInvalid : kAfterRefusal));
    if (invalid && machine != machines_.end()) warn(machine->second, "InvalidMachine", message_in(*reply));
    const bool conflict = reply && (reply->code == 409 || reply->code == 404);
    if (!done && !conflict)
        base::log_warning("A write was refused",
                          {{"object", sent.key}, {"answer", reply ? reply->body : reply.error().message}});
    if (!done || sent.reason.empty() || machine == machines_.end()) return;
    const auto& meta = machine->second.object.meta;
    const bool warning = sent.reason != "Scheduled";
    tell(recorder_,
         {"compute.ironcore.dev/v1alpha1", "Machine", meta.ns, meta.name, meta.uid, warning, sent.reason, sent.message},
         now_.wall);
}

}  // namespace berth::run
