#include "run/poollet.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "model/times.h"

// What goes down: the layer's Reservations and Machines as its server tells them, and what is asked for them below.
namespace berth::run {
namespace {

using fleet::kMachinePools;
using fleet::kMachines;
using model::HoldAnswer;
using model::HoldState;

constexpr const char* kBestEffort = "best-effort";  // in place of an id below
// Feeds beside those that are called as what they show.
constexpr const char* kAskingUs = "reservations that name us";
constexpr const char* kLeftUs = "machines that were taken back from us";

}  // namespace

Poollet::Poollet(Doors doors, PoolletOptions options)
    : options_(std::move(options)),
      inbox_(std::make_shared<Inbox>(doors.wake)),
      runtime_(std::move(doors.runtime)),
      session_(std::move(doors.server), doors.wake),
      recorder_(session_.server(), "machinepoollet"),
      lease_(options_.pool) {
    if (doors.metrics != nullptr) {
        called_ = &doors.metrics->counter("berth_fleet_calls_total", "Calls between pools and what is below them.");
        wrote_ = &doors.metrics->counter("berth_fleet_writes_total", "Writes to the server of the layer.");
    }
    session_.follow(fleet::kMachineClasses, fleet_resource(fleet::kMachineClasses));
    follow(kMachinePools, kMachinePools, "metadata.name=" + options_.pool, "");
    // Each change of a layer would otherwise be heard by all its poollets, of which it concerns few.
    follow(kAskingUs, fleet::kReservations, "", fleet::pool_label(options_.pool));
    follow(fleet::kReservations, fleet::kReservations, "", fmt::format("!{}", fleet::kAsks));
    follow(fleet::kDraftReservations, fleet::kDraftReservations, "", "");
    follow(kMachines, kMachines, "spec.machinePoolRef.name=" + options_.pool, "");
    follow(kLeftUs, kMachines, "", fmt::format("{}={}", fleet::kLeft, fleet::label_value(options_.pool)));
}

void Poollet::follow(const std::string& feed, const std::string& resource, std::string fields, std::string labels) {
    auto from = fleet_resource(resource);
    from.only = std::move(fields);
    from.labels = std::move(labels);
    session_.follow(feed, from);
}

Poollet::~Poollet() {
    watch_.reset();
    inbox_->close();
}

void Poollet::turn(const Moment& now) {
    now_ = now;
    next_ = now_.now + kFleetLongestWait;
    session_.answers([this](const Sent& sent, const Result<link::Reply>& reply) { answered(sent, reply); });
    session_.hear([this](const std::string& resource, const link::FeedEvent& event) { take(resource, event); });
    inbox_->run();
    if (stopping_) return watch_.reset();
    if (!session_.synced()) return;
    keep_watch();
    keep_pool();
    keep_lease();
    compare();
    work();
}

void Poollet::take(const std::string& feed, const link::FeedEvent& event) {
    const auto document = fleet_document(event);
    if (!document) return;
    const bool put = event.type == link::FeedEvent::Type::Put;
    const std::string key = fleet_key(fleet::meta_of(*document));
    if (feed == fleet::kMachineClasses) {
        auto read = fleet::read_machine_class(*document);
        classes_.erase(key);
        if (put && read) classes_[key] = std::move(*read);
        look_at_all();
    } else if (feed == kMachinePools) {
        if (key != options_.pool) return;
        pool_.reset();
        if (put) pool_ = *document;
        pool_seen_ = pool_seen_ || put;
        note_pace(fmt::format("{} {}", kMachinePools, key), put, fleet::meta_of(*document).revision);
    } else if (feed == kMachines || feed == kLeftUs) {
        take_machine(feed, *document, put);
    } else {
        take_reservation(feed, feed == kAskingUs ? fleet::kReservations : feed, *document, put);
    }
}

void Poollet::note_pace(const std::string& place, bool put, uint64_t revision) {
    put ? pace_.seen(place, revision) : pace_.gone(place);
}

// The uid of whom it replaces under that name, if anybody.
std::string Poollet::appear(const std::string& feed, const std::string& place, const std::string& uid) {
    Shown& shown = shown_[place];
    std::string before;
    if (shown.uid != uid) {
        before = std::exchange(shown.uid, uid);
        shown.feeds.clear();
    }
    shown.feeds.insert(feed);
    return before;
}

// The uid of whom no feed shows any more, if this was the last one.
std::string Poollet::vanish(const std::string& feed, const std::string& place, const std::string& uid) {
    const auto found = shown_.find(place);
    if (found == shown_.end() || found->second.uid != uid) return "";
    found->second.feeds.erase(feed);
    if (!found->second.feeds.empty()) return "";
    shown_.erase(found);
    return uid;
}

void Poollet::take_reservation(const std::string& feed, const std::string& resource, const Json& document, bool put) {
    const auto meta = fleet::meta_of(document);
    const std::string place = resource + " " + fleet_key(meta);
    auto read = put ? fleet::read_reservation(document) : Result<fleet::Reservation>(base::not_found("gone"));
    // An embedded server shows all to all.
    const bool ours = read && (!read->labelled || meta.labels.has(fleet::pool_label(options_.pool)));
    const std::string gone = ours ? appear(feed, place, meta.uid) : vanish(feed, place, meta.uid);
    if (const auto old = held_.find(gone); old != held_.end()) old->second.gone = true;
    agenda_.now(gone);
    agenda_.now(meta.uid);
    if (ours || !gone.empty()) note_pace(place, ours, meta.revision);
    if (!ours) return;
    read->resource = resource;
    Held& held = held_[meta.uid];
    held.object = std::move(*read);
    held.gone = false;
}

void Poollet::take_machine(const std::string& feed, const Json& document, bool put) {
    const auto meta = fleet::meta_of(document);
    const std::string place = fmt::format("{} {}", kMachines, fleet_key(meta));
    auto read = put ? fleet::read_machine(document) : Result<fleet::Machine>(base::not_found("gone"));
    const bool ours = read && (read->pool == options_.pool || read->left == fleet::label_value(options_.pool));
    const std::string gone = ours ? appear(feed, place, meta.uid) : vanish(feed, place, meta.uid);
    if (const auto old = placed_.find(gone); old != placed_.end()) old->second.gone = true;
    agenda_.now(gone);
    agenda_.now(meta.uid);
    if (ours || !gone.empty()) note_pace(place, ours, meta.revision);
    if (!ours) return;
    Placed& placed = placed_[meta.uid];
    placed.object = std::move(*read);
    placed.document = document;
    placed.gone = false;
}

void Poollet::answered(const Sent& sent, const Result<link::Reply>& reply) {
    if (sent.lease) return lease_.answered(reply ? reply->code : 0, now_.now);
    if (!sent.ignition_of.empty()) return take_ignition(sent.ignition_of, reply);
    const bool done = reply && reply->ok();
    pace_.answered(sent.key, done ? reply->revision : 0);
    const auto shown = shown_.find(sent.key);
    if (shown == shown_.end()) {
        if (!sent.key.starts_with(kMachinePools)) pace_.answered(sent.key, 0);
        if (pool_) pace_.seen(sent.key, fleet::meta_of(*pool_).revision);
    } else if (const auto held = held_.find(shown->second.uid); held != held_.end()) {
        pace_.seen(sent.key, held->second.object.meta.revision);
    } else if (const auto placed = placed_.find(shown->second.uid); placed != placed_.end()) {
        pace_.seen(sent.key, placed->second.object.meta.revision);
    }
    const std::string uid = shown == shown_.end() ? "" : shown->second.uid;
    const bool expected = reply && (reply->code == 409 || reply->code == 404 || reply->code == 422);
    if (done || expected) return agenda_.now(uid);
    base::log_warning("A write was refused",
                      {{"object", sent.key}, {"answer", reply ? reply->body : reply.error().message}});
    agenda_.at(uid, now_.now + std::chrono::seconds(1));
    later(now_.now + std::chrono::seconds(1));
}

void Poollet::work() {
    for (const auto& uid : agenda_.take(now_.now)) {
        if (const auto held = held_.find(uid); held != held_.end()) {
            work_on(uid, held->second);
            const Held& now = held->second;
            if (now.gone && now.id.empty() && !now.calling) held_.erase(held);
        }
        if (const auto found = placed_.find(uid); found != placed_.end()) {
            work_on(uid, found->second);
            const Placed& placed = found->second;
            const bool done = placed.gone || (placed.object.pool != options_.pool && !placed.object.finalized);
            if (done && placed.removed && !placed.calling) placed_.erase(found);
        }
    }
    // What a look has left to be done at once, such as after a name that was given anew.
    if (agenda_.ready()) next_ = now_.now;
    if (const auto next = agenda_.next()) later(*next);
}

void Poollet::look_at_all() {
    for (const auto& [uid, held] : held_) agenda_.now(uid);
    for (const auto& [uid, placed] : placed_) agenda_.now(uid);
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
        return entry.answer.state == HoldState::Lost;
    }
    return false;
}

void Poollet::hold(const std::string& uid, Held& held) {
    if (now_.now < held.retry_at) return agenda_.at(uid, held.retry_at);
    model::IriReservation wanted;
    wanted.ask = held.object.ask;
    wanted.ask.pools.clear();  // which pools of its own the next layer asks is its own affair
    wanted.meta.labels = Labels{{"machinepoollet.ironcore.dev/reservation-uid", uid},
                                {"machinepoollet.ironcore.dev/reservation-namespace", held.object.meta.ns},
                                {"machinepoollet.ironcore.dev/reservation-name", held.object.meta.name},
                                {kPoolLabel, options_.pool}};
    const auto within = fleet::time_below(held.object.asked, fleet::RoundRules{});
    wanted.meta.annotations = Labels{{fleet::kWithin, model::duration_text(within)}};
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
    agenda_.at(held.object.meta.uid, held.renew_at);
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
        return agenda_.at(uid, held.renew_at);
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
    agenda_.at(uid, held.renew_at);
}

void Poollet::release(const std::string& uid, Held& held) {
    if (held.id.empty()) return;
    if (now_.now < held.retry_at && held.failures > 0) return agenda_.at(uid, held.retry_at);
    const std::string id = held.id;
    if (id == kBestEffort) {
        if (best_effort_) best_effort_->release(held.object.ask.lineage, now_.now);
        held.id.clear();
        return released(held);
    }
    held.calling = true;
    const auto done = [this, uid, id](const Result<bool>& answer) {
        const auto found = held_.find(uid);
        if (found == held_.end()) return;
        Held& here = found->second;
        here.calling = false;
        agenda_.now(uid);
        if (!answer && answer.error().reason != Reason::NotFound) {
            here.retry_at = now_.now + pause(++here.failures);
            return agenda_.at(uid, here.retry_at);
        }
        here.id.clear();
        here.failures = 0;
        by_id_.erase(id);
        released(here);
    };
    runtime_->delete_reservation(id, expect<bool>(done));
}

// Of a Machine's reservation spec.pools says who is still asked: nobody needs a write for that.
void Poollet::released(Held& held) {
    if (held.gone || held.object.for_machine()) return;
    if (held.answer && held.answer->state != HoldState::Bound) held.answer = HoldAnswer{HoldState::Released};
    write_entry(held);
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
        agenda_.at(uid, placed.retry_at);
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
    if (now_.now < placed.retry_at) return agenda_.at(uid, placed.retry_at);
    const auto& machine = placed.object;
    const auto known = classes_.find(machine.machine_class);
    if (!machine.trouble.empty()) return say(placed, true, "InvalidMachine", machine.trouble);
    if (known == classes_.end() && !machine.resources) {
        placed.retry_at = now_.now + pause(++placed.failures);
        agenda_.at(uid, placed.retry_at);
        return say(placed, true, "MachineClassNotReady",
                   fmt::format("machine class {} does not exist", machine.machine_class));
    }
    if (!has_ignition(uid, placed)) return;
    const auto needs = fleet::needs(machine, known == classes_.end() ? fleet::MachineClass{} : known->second);
    auto wanted = fleet::iri_machine(placed.document, machine, needs);
    wanted.meta.labels.set(kPoolLabel, options_.pool);
    wanted.ignition = placed.ignition.value_or("");
    placed.calling = true;
    runtime_->create_machine(
        std::move(wanted), expect<model::IriMachine>([this, uid](const Result<model::IriMachine>& answer) {
            const auto found = placed_.find(uid);
            if (found == placed_.end()) return;
            Placed& here = found->second;
            here.calling = false;
            agenda_.now(uid);
            if (answer) {
                here.failures = 0;
                here.id = answer->meta.id;
                here.below = *answer;
                here.came_at = now_.now;
                here.removed = false;
                here.ignition.reset();
                place_best_effort(here);
                return say(here, false, "Created", fmt::format("brought to pool {}", options_.pool));
            }
            here.retry_at = now_.now + pause(++here.failures);
            agenda_.at(uid, here.retry_at);
            say(here, true, "FailedCreate", answer.error().message);
        }));
}

// True: it names none, or it was read.
bool Poollet::has_ignition(const std::string& uid, Placed& placed) {
    const auto ref = fleet::ignition_ref(placed.document);
    if (!ref || placed.ignition) return true;
    placed.calling = true;
    const std::string path = fmt::format("/api/v1/namespaces/{}/secrets/{}", placed.object.meta.ns, ref->name);
    session_.send({"GET", path}, {"", uid});
    return false;
}

// Until what is below says that it knows no such machine.
void Poollet::take_away(const std::string& uid, Placed& placed) {
    if (placed.removed) {
        if (!placed.gone && placed.object.finalized) set_finalizer(placed, false);
        return;
    }
    if (now_.now < placed.retry_at) return agenda_.at(uid, placed.retry_at);
    // Of one that was never seen below, the attempt: a late copy of the request to make it is refused, too.
    const std::string id =
        placed.id.empty() ? fmt::format("{}@{}", placed.object.lineage, placed.object.attempt) : placed.id;
    placed.calling = true;
    runtime_->delete_machine(id, expect<bool>([this, uid](const Result<bool>& answer) {
                                 const auto found = placed_.find(uid);
                                 if (found == placed_.end()) return;
                                 Placed& here = found->second;
                                 here.calling = false;
                                 agenda_.now(uid);
                                 if (!answer && answer.error().reason == Reason::NotFound) {
                                     here.removed = true;
                                     if (best_effort_) best_effort_->remove(here.object.lineage, now_.now);
                                     here.below.reset();
                                     here.failures = 0;
                                     return;
                                 }
                                 if (!answer && !here.gone) say(here, true, "FailedDelete", answer.error().message);
                                 // It is going: asked again soon, then less often.
                                 if (++here.failures > 1) here.retry_at = now_.now + pause(here.failures);
                                 agenda_.at(uid, here.retry_at);
                             }));
}

}  // namespace berth::run
