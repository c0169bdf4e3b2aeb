#include "run/poollet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

// What goes down: the layer's Reservations and Machines as its server tells them, and what is asked for them below.
namespace berth::run {
namespace {

using fleet::kMachinePools;
using fleet::kMachines;
using model::HoldAnswer;
using model::HoldState;

constexpr base::Duration kLongestWait = std::chrono::seconds(5);
constexpr const char* kBestEffort = "best-effort";  // in place of an id below

}  // namespace

Poollet::Poollet(Doors doors, PoolletOptions options)
    : options_(std::move(options)),
      inbox_(std::make_shared<Inbox>(doors.wake)),
      runtime_(std::move(doors.runtime)),
      session_(std::move(doors.server), doors.wake),
      recorder_(session_.server(), "machinepoollet") {
    if (doors.metrics != nullptr) {
        called_ = &doors.metrics->counter("berth_fleet_calls_total", "Calls between pools and what is below them.");
        wrote_ = &doors.metrics->counter("berth_fleet_writes_total", "Writes to the server of the layer.");
    }
    for (const char* resource :
         {fleet::kMachineClasses, kMachinePools, fleet::kReservations, fleet::kDraftReservations, kMachines}) {
        session_.follow(resource, fleet_resource(resource));
    }
}

Poollet::~Poollet() {
    watch_.reset();
    inbox_->close();
}

void Poollet::turn(const Moment& now) {
    now_ = now;
    next_ = now_.now + kLongestWait;
    session_.answers([this](const Sent& sent, const Result<link::Reply>& reply) { answered(sent, reply); });
    session_.hear([this](const std::string& resource, const link::FeedEvent& event) { take(resource, event); });
    inbox_->run();
    if (stopping_) return watch_.reset();
    if (!session_.synced()) return;
    keep_watch();
    keep_pool();
    compare();
    work();
}

void Poollet::take(const std::string& resource, const link::FeedEvent& event) {
    const auto document = fleet_document(event);
    if (!document) return;
    const auto meta = fleet::meta_of(*document);
    const std::string key = fleet_key(meta);
    const bool put = event.type == link::FeedEvent::Type::Put;
    const Json* now = put ? &*document : nullptr;
    if (put) {
        pace_.seen(resource + " " + key, meta.revision);
    } else {
        pace_.gone(resource + " " + key);
    }
    if (resource == fleet::kMachineClasses) {
        auto read = fleet::read_machine_class(*document);
        classes_.erase(key);
        if (put && read) classes_[key] = std::move(*read);
    } else if (resource == kMachinePools) {
        if (key != options_.pool) return;
        pool_.reset();
        if (put) pool_ = *document;
        pool_seen_ = pool_seen_ || put;
    } else if (resource == kMachines) {
        take_machine(key, now);
    } else {
        take_reservation(key, resource, now);
    }
}

void Poollet::take_reservation(const std::string& key, const std::string& resource, const Json* document) {
    const std::string place = resource + " " + key;
    auto read =
        document == nullptr ? Result<fleet::Reservation>(base::not_found("gone")) : fleet::read_reservation(*document);
    const auto before = uids_.find(place);
    const bool another = before != uids_.end() && (!read || before->second != read->meta.uid);
    if (another) {
        const auto old = held_.find(before->second);
        if (old != held_.end()) old->second.gone = true;
        uids_.erase(before);
    }
    if (!read) return;
    read->resource = resource;
    const std::string uid = read->meta.uid;
    uids_[place] = uid;
    held_[uid].object = std::move(*read);
}

void Poollet::take_machine(const std::string& key, const Json* document) {
    const std::string place = std::string(kMachines) + " " + key;
    auto read = document == nullptr ? Result<fleet::Machine>(base::not_found("gone")) : fleet::read_machine(*document);
    const auto before = uids_.find(place);
    const bool another = before != uids_.end() && (!read || before->second != read->meta.uid);
    if (another) {
        const auto old = placed_.find(before->second);
        if (old != placed_.end()) old->second.gone = true;
        uids_.erase(before);
    }
    if (!read) return;
    const std::string uid = read->meta.uid;
    const bool ours = read->pool == options_.pool;
    if (!ours && !placed_.contains(uid)) return;
    uids_[place] = uid;
    Placed& placed = placed_[uid];
    placed.object = std::move(*read);
    placed.document = *document;
}

void Poollet::answered(const Sent& sent, const Result<link::Reply>& reply) {
    const bool done = reply && reply->ok();
    pace_.answered(sent.key, done ? reply->revision : 0);
    const auto uid = uids_.find(sent.key);
    if (uid == uids_.end()) {
        if (!sent.key.starts_with(kMachinePools)) pace_.answered(sent.key, 0);
        if (pool_) pace_.seen(sent.key, fleet::meta_of(*pool_).revision);
    } else if (const auto held = held_.find(uid->second); held != held_.end()) {
        pace_.seen(sent.key, held->second.object.meta.revision);
    } else if (const auto placed = placed_.find(uid->second); placed != placed_.end()) {
        pace_.seen(sent.key, placed->second.object.meta.revision);
    }
    const bool expected = reply && (reply->code == 409 || reply->code == 404 || reply->code == 422);
    if (done || expected) return;
    base::log_warning("A write was refused",
                      {{"object", sent.key}, {"answer", reply ? reply->body : reply.error().message}});
    later(now_.now + std::chrono::seconds(1));
}

void Poollet::work() {
    for (auto it = held_.begin(); it != held_.end();) {
        const auto here = it++;
        work_on(here->first, here->second);
        const Held& held = here->second;
        if (held.gone && held.id.empty() && !held.calling) held_.erase(here);
    }
    for (auto it = placed_.begin(); it != placed_.end();) {
        const auto here = it++;
        work_on(here->first, here->second);
        const Placed& placed = here->second;
        const bool done = placed.gone || (placed.object.pool != options_.pool && !placed.object.finalized);
        if (done && placed.removed && !placed.calling) placed_.erase(here);
    }
}

base::Duration Poollet::pause(uint64_t failures) const {
    return std::min<base::Duration>(fleet::backoff(failures, options_.pool) / 4, std::chrono::seconds(10));
}

void Poollet::send(const std::string& key, model::Write write) {
    if (wrote_ != nullptr) wrote_->add();
    pace_.sent(key);
    session_.send(request_for(std::move(write)), {key});
}

bool Poollet::concerns(const fleet::Reservation& reservation) const {
    if (reservation.meta.deleted) return false;
    const auto& pools = reservation.asked.pools;
    const auto& pinned = reservation.asked.pinned;
    if (!pinned.empty() && std::find(pinned.begin(), pinned.end(), options_.pool) == pinned.end()) return false;
    // For a Machine the scheduler names the pools; else none is every one.
    if (pools.empty()) return !reservation.for_machine();
    return std::find(pools.begin(), pools.end(), options_.pool) != pools.end();
}

void Poollet::work_on(const std::string& uid, Held& held) {
    if (held.calling) return;
    if (held.gone || !concerns(held.object) || ended(held)) return release(uid, held);
    if (held.id.empty()) return hold(uid, held);
    look_after(uid, held);
    write_entry(held);
}

// What we have said ourselves, perhaps before a restart: an attempt does not go back from it. Who keeps room may give a
// pool up and name it again.
bool Poollet::ended(const Held& held) const {
    for (const auto& entry : held.object.asked.entries) {
        if (entry.name != options_.pool) continue;
        const bool released = entry.answer.state == HoldState::Released && held.object.for_machine();
        return released || entry.answer.state == HoldState::Lost;
    }
    return false;
}

void Poollet::hold(const std::string& uid, Held& held) {
    if (now_.now < held.retry_at) return later(held.retry_at);
    model::IriReservation wanted;
    wanted.ask = held.object.ask;
    wanted.ask.pools.clear();  // which pools of its own the next layer asks is its own affair
    wanted.meta.labels = Labels{{"machinepoollet.ironcore.dev/reservation-uid", uid},
                                {"machinepoollet.ironcore.dev/reservation-namespace", held.object.meta.ns},
                                {"machinepoollet.ironcore.dev/reservation-name", held.object.meta.name},
                                {kPoolLabel, options_.pool}};
    held.calling = true;
    runtime_->create_reservation(
        std::move(wanted), expect<model::IriReservation>([this, uid](const Answer& answer) { heard(uid, answer); }));
}

// Nobody below can hold anything: we keep the ledger, as far as machines of classes are counted, and say so.
void Poollet::hold_best_effort(Held& held) {
    if (!best_effort_) {
        best_effort_.emplace(below_.value_or(std::vector<model::IriClassStatus>()), now_.now);
        for (const auto& [uid, placed] : placed_) place_best_effort(placed);
        base::log_warning("What is below knows no reservations: they are kept here, best effort",
                          {{"pool", options_.pool}});
    }
    held.id = kBestEffort;
    const bool commits = held.object.asked.commit == options_.pool;
    held.answer = best_effort_->hold(held.object.ask, commits, now_.now);
    held.renew_at = now_.now + kRenewEvery;
    later(held.renew_at);
}

void Poollet::place_best_effort(const Placed& placed) {
    if (!best_effort_ || !placed.below) return;
    best_effort_->place(placed.object.lineage, placed.object.attempt, placed.object.machine_class, now_.now);
}

void Poollet::look_after(const std::string& uid, Held& held) {
    if (!held.answer) return;
    if (held.id == kBestEffort) {
        const bool commits = held.object.asked.commit == options_.pool && !held.answer->committed;
        if (commits || now_.now >= held.renew_at) hold_best_effort(held);
        return later(held.renew_at);
    }
    // A refusal is kept alive, too: room that comes is told to those who wait for it.
    if (held.answer->state >= HoldState::Bound) return;
    const auto reply = [this, uid](const Answer& answer) { heard(uid, answer); };
    if (held.answer->state == HoldState::Accepted && held.object.asked.commit == options_.pool &&
        !held.answer->committed && now_.now >= held.retry_at) {
        held.calling = true;
        held.retry_at = now_.now + std::chrono::seconds(1);
        runtime_->confirm_reservation(held.id, held.object.ask.attempt, expect<model::IriReservation>(reply));
    } else if (now_.now >= held.renew_at) {
        held.calling = true;
        held.renew_at = now_.now + kRenewEvery;
        runtime_->renew_reservation(held.id, expect<model::IriReservation>(reply));
    }
    later(held.renew_at);
}

void Poollet::release(const std::string& uid, Held& held) {
    if (held.id.empty()) return;
    if (now_.now < held.retry_at && held.failures > 0) return later(held.retry_at);
    const std::string id = held.id;
    if (id == kBestEffort) {
        if (best_effort_) best_effort_->release(held.object.ask.lineage, now_.now);
        held.id.clear();
        if (held.answer && held.answer->state != HoldState::Bound) held.answer = HoldAnswer{HoldState::Released};
        return write_entry(held);
    }
    held.calling = true;
    const auto released = [this, uid, id](const Result<bool>& answer) {
        const auto found = held_.find(uid);
        if (found == held_.end()) return;
        Held& here = found->second;
        here.calling = false;
        if (!answer && answer.error().reason != Reason::NotFound) {
            here.retry_at = now_.now + pause(++here.failures);
            return later(here.retry_at);
        }
        here.id.clear();
        here.failures = 0;
        by_id_.erase(id);
        if (here.answer && here.answer->state != HoldState::Bound) here.answer = HoldAnswer{HoldState::Released};
        if (!here.gone) write_entry(here);
    };
    runtime_->delete_reservation(id, expect<bool>(released));
}

void Poollet::work_on(const std::string& uid, Placed& placed) {
    if (placed.calling) return;
    const bool ours = !placed.gone && !placed.object.meta.deleted && placed.object.pool == options_.pool;
    if (!ours) return take_away(uid, placed);
    if (!placed.object.finalized) return set_finalizer(placed, true);
    if (!placed.below) return bring(uid, placed);
    const bool settled = update(uid, placed);
    write_machine(placed, settled);
}

// What its spec says otherwise than what is below, one call at a time. True: nothing.
bool Poollet::update(const std::string& uid, Placed& placed) {
    const auto wanted = fleet::iri_machine(placed.document, placed.object, {});
    const auto step = fleet::next_update(wanted, *placed.below);
    if (!step) return true;
    if (now_.now < placed.retry_at) {
        later(placed.retry_at);
        return false;
    }
    placed.calling = true;
    auto reply = expect<bool>([this, uid, done = *step](const Result<bool>& answer) { updated(uid, done, answer); });
    const std::string& id = placed.id;
    using Do = fleet::MachineUpdate::Do;
    switch (step->what) {
        case Do::Power:
            runtime_->update_power(id, step->on, std::move(reply));
            break;
        case Do::AttachVolume:
        case Do::UpdateVolume:
            runtime_->put_volume(id, step->volume, step->what == Do::AttachVolume, std::move(reply));
            break;
        case Do::DetachVolume:
            runtime_->detach_volume(id, step->volume.name, std::move(reply));
            break;
        case Do::AttachInterface:
            runtime_->attach_interface(id, step->network_interface, std::move(reply));
            break;
        case Do::DetachInterface:
            runtime_->detach_interface(id, step->network_interface.name, std::move(reply));
            break;
    }
    return false;
}

void Poollet::bring(const std::string& uid, Placed& placed) {
    if (!machines_listed_) return;
    if (now_.now < placed.retry_at) return later(placed.retry_at);
    const auto& machine = placed.object;
    const auto known = classes_.find(machine.machine_class);
    if (known == classes_.end() && !machine.resources) {
        placed.retry_at = now_.now + pause(++placed.failures);
        later(placed.retry_at);
        return say(placed, true, "MachineClassNotReady",
                   fmt::format("machine class {} does not exist", machine.machine_class));
    }
    const auto needs = fleet::needs(machine, known == classes_.end() ? fleet::MachineClass{} : known->second);
    auto wanted = fleet::iri_machine(placed.document, machine, needs);
    wanted.meta.labels.set(kPoolLabel, options_.pool);
    placed.calling = true;
    runtime_->create_machine(
        std::move(wanted), expect<model::IriMachine>([this, uid](const Result<model::IriMachine>& answer) {
            const auto found = placed_.find(uid);
            if (found == placed_.end()) return;
            Placed& here = found->second;
            here.calling = false;
            if (answer) {
                here.failures = 0;
                here.id = answer->meta.id;
                here.below = *answer;
                here.removed = false;
                place_best_effort(here);
                return say(here, false, "Created", fmt::format("brought to pool {}", options_.pool));
            }
            here.retry_at = now_.now + pause(++here.failures);
            later(here.retry_at);
            say(here, true, "FailedCreate", answer.error().message);
        }));
}

// Until what is below says that it knows no such machine.
void Poollet::take_away(const std::string& uid, Placed& placed) {
    if (placed.removed) {
        if (!placed.gone && placed.object.finalized) set_finalizer(placed, false);
        return;
    }
    if (now_.now < placed.retry_at) return later(placed.retry_at);
    // Of one that was never seen below, the attempt: a late copy of the request to make it is refused, too.
    const std::string id =
        placed.id.empty() ? fmt::format("{}@{}", placed.object.lineage, placed.object.attempt) : placed.id;
    placed.calling = true;
    runtime_->delete_machine(id, expect<bool>([this, uid](const Result<bool>& answer) {
                                 const auto found = placed_.find(uid);
                                 if (found == placed_.end()) return;
                                 Placed& here = found->second;
                                 here.calling = false;
                                 if (!answer && answer.error().reason == Reason::NotFound) {
                                     here.removed = true;
                                     if (best_effort_) best_effort_->remove(here.object.lineage, now_.now);
                                     here.below.reset();
                                     here.failures = 0;
                                     return;
                                 }
                                 // It is going: asked again soon, then less often.
                                 if (++here.failures > 1) here.retry_at = now_.now + pause(here.failures);
                                 later(here.retry_at);
                             }));
}

}  // namespace berth::run
