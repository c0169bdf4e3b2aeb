#include <fmt/format.h>

#include <algorithm>

#include "base/clipped.h"
#include "base/log.h"
#include "model/times.h"
#include "run/poollet.h"

// What comes up: what those below answer, list and tell, and what of it is written to the layer's server.
namespace berth::run {
namespace {

using fleet::kMachinePools;
using fleet::kMachines;
using link::RuntimeChange;
using model::HoldAnswer;
using model::HoldState;
using Verb = model::Write::Verb;

constexpr base::Duration kStatusEvery = std::chrono::seconds(10);
constexpr base::Duration kCompareEvery = std::chrono::seconds(30);
constexpr base::Duration kPendingAfter = std::chrono::milliseconds(500);
constexpr base::Duration kLongestCall = std::chrono::seconds(5);
constexpr size_t kMostOfReason = 512;

// An attempt goes from one of these to the next, never back.
int rank_of(HoldState state) {
    return state == HoldState::Pending ? 0 : state <= HoldState::NoReply ? 1 : 2;
}

// An answer about somebody else's reservation is none. A layer that a broker answers for may shorten a lineage.
bool is_about(const model::IriReservation& answer, const std::string& id, const std::string& lineage) {
    const std::string& said = answer.ask.lineage;
    return (id.empty() || answer.meta.id == id) &&
           (said.empty() || said == lineage || said == fleet::label_value(lineage));
}

// Long before a layer stops waiting for who has said nothing, which is after a third of its time. E.g. 6 s: 500 ms.
base::Duration pending_after(const fleet::Asked& asked) {
    return fleet::whole_time(asked, fleet::RoundRules{}) / 12;
}

}  // namespace

void Poollet::keep_watch() {
    if (watch_ != nullptr) return;
    if (now_.now < watch_at_) return later(watch_at_);
    watch_at_ = now_.now + std::chrono::seconds(1);
    watch_ = runtime_->watch(
        [inbox = inbox_, this](const RuntimeChange& change) { inbox->push([this, change] { changed_below(change); }); },
        [inbox = inbox_, this](const Error& why) {
            inbox->push([this, why] {
                watch_.reset();
                // Without one everything comes by comparing, which is slower.
                watch_at_ =
                    now_.now + (why.reason == Reason::MethodNotAllowed ? kCompareEvery : std::chrono::seconds(1));
                compare_at_ = now_.now;
            });
        });
}

void Poollet::keep_pool() {
    if (now_.now >= status_at_) {
        status_at_ = now_.now + kStatusEvery;
        if (!version_known_) ask_version();
        runtime_->status(expect<std::vector<model::IriClassStatus>>([this](const auto& answer) {
            if (answer) {
                below_ = *answer;
                silent_ = 0;
                if (best_effort_) best_effort_->resize(*below_, now_.now);
                return;
            }
            why_silent_ = base::clipped(": " + answer.error().message, kMostOfReason);
            if (++silent_ > 1) {
                below_.reset();
            } else {
                status_at_ = now_.now + std::chrono::seconds(1);
            }
        }));
    }
    later(status_at_);
    const std::string key = std::string(kMachinePools) + " " + options_.pool;
    if (pace_.busy(key)) return;
    if (!pool_) return make_pool(key);
    if (const auto known = fleet::meta_of(*pool_).annotations.get(fleet::kLayer); !layer_.empty() && known != layer_) {
        const JsonObject notes{{fleet::kLayer, layer_}};
        return send(key, fleet_patch(kMachinePools, fleet::meta_of(*pool_),
                                     JsonObject{{"metadata", JsonObject{{"annotations", notes}}}}));
    }
    // At the start nothing is known of what is below.
    if (!below_ && silent_ == 0) return;
    tell_pool(fleet::meta_of(*pool_), below_.has_value(), below_.value_or(std::vector<model::IriClassStatus>()));
}

void Poollet::keep_lease() {
    if (auto write = lease_.next(now_)) session_.send(request_for(std::move(*write)), {"", "", true});
    if (const auto at = lease_.at()) later(*at);
}

void Poollet::make_pool(const std::string& key) {
    JsonObject labels;
    for (const auto& [name, value] : options_.labels) labels[name] = value;
    JsonObject body{{"apiVersion", "compute.ironcore.dev/v1alpha1"},
                    {"kind", "MachinePool"},
                    {"metadata", JsonObject{{"name", options_.pool}, {"labels", std::move(labels)}}},
                    {"spec", JsonObject{{"providerID", options_.provider_id}}}};
    send(key, {Verb::Create, kMachinePools, fleet::kVersion, "", "", "", std::move(body)});
}

// Who is below; asked until it says so.
void Poollet::ask_version() {
    using Version = link::MachineRuntime::Version;
    runtime_->version(expect<Version>([this](const Result<Version>& answer) {
        if (!answer) return;
        version_known_ = true;
        look_at_all();
        if (!answer->name.empty()) runtime_name_ = answer->name;
        layer_ = answer->layer;
    }));
}

// {"class/machine.small":"3"}: how many machines there may be, or how many more.
JsonObject Poollet::amounts_of(const std::vector<model::IriClassStatus>& classes, bool allocatable) const {
    JsonObject out;
    for (const auto& each : classes) {
        int64_t count = each.quantity;
        for (const auto& [uid, placed] : placed_) {
            if (allocatable && placed.below && placed.object.machine_class == each.name) --count;
        }
        out["class/machine." + each.name] = std::to_string(std::max<int64_t>(0, count));
    }
    return out;
}

// Amounts stay below, unless their owner publishes them.
void Poollet::tell_pool(const model::Meta& meta, bool ready, const std::vector<model::IriClassStatus>& classes) {
    const Json* status = base::find(*pool_, {"status"});
    std::string known;
    if (status != nullptr) {
        if (const Json* list = base::find(*status, {"conditions"});
            list != nullptr && list->is_array() && !list->get_array().empty())
            known = base::find_string(list->get_array()[0], {"status"});
    }
    JsonArray names;
    for (const auto& each : classes) {
        if (!each.name.empty()) names.push_back(JsonObject{{"name", each.name}});
    }
    const Json* told = status == nullptr ? nullptr : base::find(*status, {"availableMachineClasses"});
    const bool same_classes = told == nullptr ? names.empty() : *told == Json(names);
    const std::string word = ready ? "True" : "False";
    JsonObject body{{"state", "Ready"}, {"availableMachineClasses", names}};
    bool same_amounts = true;
    for (const bool allocatable : {false, true}) {
        if (!options_.publish_amounts || !ready) break;
        const char* member = allocatable ? "allocatable" : "capacity";
        Json amounts(amounts_of(classes, allocatable));
        const Json* has = status == nullptr ? nullptr : base::find(*status, {member});
        same_amounts = same_amounts && (has == nullptr ? amounts.get_object().empty() : *has == amounts);
        body[member] = std::move(amounts);
    }
    if (known == word && ((same_classes && same_amounts) || !ready)) return;
    const auto at = model::time_text(now_.wall);
    JsonObject condition{{"type", "Ready"},
                         {"status", word},
                         {"reason", ready ? "HeartbeatReceived" : "RuntimeUnreachable"},
                         {"message", ready ? "what is below answers" : "what is below does not answer" + why_silent_},
                         {"lastUpdateTime", at},
                         {"lastTransitionTime", at}};
    body["conditions"] = JsonArray{condition};
    send(std::string(kMachinePools) + " " + options_.pool,
         fleet_patch(kMachinePools, meta, JsonObject{{"status", std::move(body)}}, "status"));
}

// Both ways: what is here and not below is asked for again, what is below and not here is released.
void Poollet::compare() {
    if (now_.now < compare_at_) return later(compare_at_);
    look_at_all();
    compare_at_ = now_.now + kCompareEvery;
    // All of them: what others have built need not select by labels of ours, though they keep them.
    runtime_->list_machines({}, expect<std::vector<model::IriMachine>>([this](const auto& answer) {
                                if (answer) return take_lists(*answer);
                                compare_at_ = now_.now + std::chrono::seconds(1);
                            }));
    const model::IriFilter ours{"", Labels{{kPoolLabel, options_.pool}}};
    const auto listed = [this, asked_at = now_.now](const auto& answer) {
        if (answer) take_lists(*answer, asked_at);
    };
    runtime_->list_reservations(ours, expect<std::vector<model::IriReservation>>(listed));
}

void Poollet::take_lists(const std::vector<model::IriReservation>& reservations, base::Instant asked_at) {
    std::set<std::string> there;
    for (const auto& below : reservations) there.insert(below.meta.id);
    // What should be there and is not: its renewal says whether it is lost.
    for (auto& [uid, held] : held_) {
        const bool missing = !held.id.empty() && held.came_at < asked_at && !there.contains(held.id);
        if (!missing) continue;
        held.renew_at = now_.now;
        agenda_.now(uid);
    }
    for (const auto& below : reservations) {
        const std::string uid(below.meta.labels.get("machinepoollet.ironcore.dev/reservation-uid"));
        const auto held = held_.find(uid);
        if (held != held_.end()) {
            held->second.id = below.meta.id;
            by_id_[below.meta.id] = uid;
            take_answer(held->second, below);
            agenda_.now(uid);
        } else if (!uid.empty()) {
            runtime_->delete_reservation(below.meta.id, expect<bool>([](const auto&) {}));
        }
    }
}

void Poollet::take_lists(const std::vector<model::IriMachine>& machines) {
    if (!std::exchange(machines_listed_, true)) look_at_all();
    for (const auto& below : machines) {
        if (below.meta.labels.get(kPoolLabel) != options_.pool) continue;
        const std::string uid(below.meta.labels.get("machinepoollet.ironcore.dev/machine-uid"));
        const auto placed = placed_.find(uid);
        if (placed != placed_.end()) {
            placed->second.id = below.meta.id;
            placed->second.below = below;
            place_best_effort(placed->second);
            agenda_.now(uid);
        } else if (!uid.empty()) {
            runtime_->delete_machine(below.meta.id, expect<bool>([](const auto&) {}));
        }
    }
}

void Poollet::changed_below(const RuntimeChange& change) {
    if (change.what == RuntimeChange::What::Machine) {
        const auto placed =
            placed_.find(std::string(change.machine.meta.labels.get("machinepoollet.ironcore.dev/machine-uid")));
        if (placed == placed_.end() || placed->second.removed) return;
        placed->second.id = change.machine.meta.id;
        placed->second.below = change.machine;
        return agenda_.now(placed->first);
    }
    // By its label: the answer to our request may come later than this.
    const auto& meta = change.reservation.meta;
    const auto known = by_id_.find(meta.id);
    const auto held =
        held_.find(known != by_id_.end() ? known->second : std::string(meta.labels.get(fleet::kReservationUid)));
    const bool ours =
        held != held_.end() && (held->second.id.empty() ? held->second.calling : held->second.id == meta.id);
    if (!ours) return;
    agenda_.now(held->first);
    if (change.what == RuntimeChange::What::Reservation) {
        if (is_about(change.reservation, "", held->second.object.ask.lineage))
            take_answer(held->second, change.reservation);
        return;
    }
    // It is no longer there: the next renewal would say so.
    if (held->second.answer && held->second.answer->state == HoldState::Accepted)
        held->second.answer = HoldAnswer{HoldState::Lost};
}

void Poollet::heard(const std::string& uid, Answer answer) {
    const auto found = held_.find(uid);
    if (found == held_.end()) return;
    Held& held = found->second;
    held.calling = false;
    agenda_.now(uid);
    if (answer && !is_about(*answer, held.id, held.object.ask.lineage))
        answer = Error{Reason::ServiceUnavailable,
                       base::clipped(fmt::format("the runtime answered for {} of \"{}\", asked for {} of \"{}\"",
                                                 answer->meta.id, answer->ask.lineage,
                                                 held.id.empty() ? "a new one" : held.id, held.object.ask.lineage),
                                     kMostOfReason)};
    if (answer) {
        held.failures = 0;
        held.trouble.clear();
        held.renew_at = now_.now + kRenewEvery;
        if (held.id.empty()) held.came_at = now_.now;
        held.id = answer->meta.id;
        by_id_[held.id] = uid;
        // What the watch tells may overtake replies, for as long as a call lasts. Of two in a row that are older after
        // that, what was told was not so.
        const bool older =
            answer->epoch == held.epoch && answer->sequence < held.sequence && now_.now - held.raised_at > kLongestCall;
        held.behind = older ? held.behind + 1 : 0;
        if (held.behind > 1) held.sequence = answer->sequence;
        return take_answer(held, *answer);
    }
    if (answer.error().reason == Reason::NotFound && !held.id.empty()) {
        held.answer = HoldAnswer{HoldState::Lost};
        return;
    }
    if (answer.error().reason == Reason::MethodNotAllowed) {
        return hold_best_effort(held);
    }
    log_trouble(held, answer.error());
    held.retry_at = now_.now + pause(++held.failures);
    agenda_.at(uid, held.retry_at);
}

// Once, however often it is tried again.
void Poollet::log_trouble(Held& held, const Error& error) {
    const auto words = base::clipped(error.message, kMostOfReason);
    if (std::exchange(held.trouble, words) == words) return;
    base::log_warning("A reservation has no answer from below",
                      {{"pool", options_.pool}, {"reservation", fleet_key(held.object.meta)}, {"error", words}});
}

// Answers that overtook one another: the newest counts, and an attempt never goes back.
void Poollet::take_answer(Held& held, const model::IriReservation& below) {
    const bool newer = below.epoch != held.epoch || below.sequence >= held.sequence;
    const bool ended = held.answer && held.answer->state >= HoldState::Bound && below.answer.state < HoldState::Bound;
    if (!newer || ended) return;
    if (below.epoch != held.epoch || below.sequence > held.sequence) held.raised_at = now_.now;
    held.epoch = below.epoch;
    held.sequence = below.sequence;
    held.answer = below.answer;
}

// Our entry alone: beside those of other pools, never in place of them. The index may have become another's: the server
// refuses it then, and it is looked up anew.
void Poollet::write_entry(Held& held) {
    const std::string key = held.object.resource + " " + fleet_key(held.object.meta);
    if (!held.answer || pace_.busy(key) || held.gone) return;
    const fleet::PoolEntry entry{options_.pool, *held.answer};
    const auto& entries = held.object.asked.entries;
    const auto at =
        std::find_if(entries.begin(), entries.end(), [&](const auto& each) { return each.name == options_.pool; });
    // Who is below asks others, as most do who take longer: that is worth a word when it takes longer indeed.
    const auto patience = held.came_at + pending_after(held.object.asked);
    const bool soon = entry.answer.state == HoldState::Pending && now_.now < patience;
    if (soon && at == entries.end()) return agenda_.at(held.object.meta.uid, patience);
    if (at != entries.end()) {
        const auto& a = at->answer;
        const auto& b = entry.answer;
        if (a.state == b.state && a.reason == b.reason && a.score == b.score && a.committed == b.committed) return;
        const bool named_again = a.state == HoldState::Released && !held.object.for_machine();
        if (rank_of(b.state) < rank_of(a.state) && !named_again) return;
    }
    JsonArray steps;
    auto write = fleet_write(Verb::JsonPatch, held.object.resource, held.object.meta, Json(), "status");
    if (at != entries.end()) {
        const std::string path = fmt::format("/status/pools/{}", at - entries.begin());
        steps.push_back(JsonObject{{"op", "test"}, {"path", path + "/name"}, {"value", options_.pool}});
        steps.push_back(JsonObject{{"op", "replace"}, {"path", path}, {"value", fleet::entry_document(entry)}});
    } else if (held.object.has_status) {
        steps.push_back(
            JsonObject{{"op", "add"}, {"path", "/status/pools/-"}, {"value", fleet::entry_document(entry)}});
    } else if (held.object.has_answer) {
        // Beside what the layer's scheduler has said.
        write.revision = held.object.meta.revision;
        steps.push_back(JsonObject{
            {"op", "add"}, {"path", "/status/pools"}, {"value", JsonArray{Json(fleet::entry_document(entry))}}});
    } else {
        write.revision = held.object.meta.revision;
        steps.push_back(JsonObject{{"op", "add"},
                                   {"path", "/status"},
                                   {"value", JsonObject{{"pools", JsonArray{Json(fleet::entry_document(entry))}}}}});
    }
    write.body = Json(std::move(steps));
    send(key, std::move(write));
}

// The owner of the hardware admits it or refuses; the Machine stays what it was.
void Poollet::updated(const std::string& uid, const fleet::MachineUpdate& done, const Result<bool>& answer) {
    const auto found = placed_.find(uid);
    if (found == placed_.end()) return;
    Placed& here = found->second;
    here.calling = false;
    agenda_.now(uid);
    if (answer && here.below) {
        here.failures = 0;
        return fleet::apply(done, *here.below);
    }
    if (answer) return;
    here.retry_at = now_.now + pause(++here.failures);
    agenda_.at(uid, here.retry_at);
    say(here, true, "FailedUpdate", answer.error().message);
}

// What its secret says; the Machine waits until it is there.
void Poollet::take_ignition(const std::string& uid, const Result<link::Reply>& reply) {
    const auto found = placed_.find(uid);
    if (found == placed_.end()) return;
    Placed& here = found->second;
    here.calling = false;
    agenda_.now(uid);
    const auto ref = fleet::ignition_ref(here.document);
    if (!ref) return;
    const auto secret = reply && reply->ok() ? base::parse_json(reply->body) : Result<Json>(Json());
    auto read = !reply         ? Result<std::string>(reply.error())
                : !reply->ok() ? base::not_found(fmt::format("secret {} cannot be read ({})", ref->name, reply->code))
                : !secret      ? Result<std::string>(secret.error())
                               : fleet::ignition_in(*secret, *ref);
    if (read) {
        here.ignition = std::move(*read);
        return;
    }
    here.retry_at = now_.now + pause(++here.failures);
    say(here, true, "IgnitionNotReady", read.error().message);
}

void Poollet::set_finalizer(Placed& placed, bool there) {
    const std::string key = std::string(kMachines) + " " + fleet_key(placed.object.meta);
    if (pace_.busy(key)) return;
    JsonArray finalizers;
    for (const auto& each : placed.object.finalizers) {
        if (each != fleet::kMachineFinalizer) finalizers.emplace_back(each);
    }
    if (there) finalizers.emplace_back(fleet::kMachineFinalizer);
    JsonObject meta{{"finalizers", std::move(finalizers)}};
    if (!placed.object.left.empty()) meta["labels"] = JsonObject{{fleet::kLeft, Json()}};
    auto write = fleet_patch(kMachines, placed.object.meta, JsonObject{{"metadata", std::move(meta)}});
    write.revision = placed.object.meta.revision;
    send(key, std::move(write));
}

void Poollet::write_machine(Placed& placed, bool settled) {
    const std::string key = std::string(kMachines) + " " + fleet_key(placed.object.meta);
    if (pace_.busy(key)) return;
    // Who makes it below is mostly done soon: one word for both.
    const auto patience = placed.came_at + kPendingAfter;
    const bool soon = placed.below->state == model::IriMachineState::Pending && now_.now < patience;
    if (soon && placed.object.machine_id.empty()) return agenda_.at(placed.object.meta.uid, patience);
    const std::string id = fmt::format("{}://{}", runtime_name_, placed.below->meta.id);
    auto changes = fleet::status_changes(placed.document, *placed.below, id, settled);
    if (changes.empty()) return;
    send(key, fleet_patch(kMachines, placed.object.meta, JsonObject{{"status", std::move(changes)}}, "status"));
}

void Poollet::say(Placed& placed, bool warning, const std::string& reason, const std::string& words) {
    if (std::exchange(placed.said, reason + words) == reason + words) return;
    const auto& meta = placed.object.meta;
    tell(recorder_, {"compute.ironcore.dev/v1alpha1", "Machine", meta.ns, meta.name, meta.uid, warning, reason, words},
         now_.wall);
}

}  // namespace berth::run
