#include "run/controllers_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "base/mentions.h"
#include "model/allocated.h"
#include "model/reservation.h"
#include "run/decoded.h"
#include "run/reservation_metrics.h"
#include "run/writes.h"

namespace berth::run {
namespace {

constexpr size_t kTargetsPerRound = 128;
constexpr base::Duration kLongestWait = std::chrono::seconds(1);
constexpr base::Duration kFirstBackoff = std::chrono::milliseconds(50);
constexpr base::Duration kLongestBackoff = std::chrono::seconds(5);

link::Resource resource_of(const std::string& name) {
    const auto slash = name.find('/');
    if (slash == std::string::npos) return {"", model::version_of(name), name};
    return {name.substr(0, slash), model::version_of(name), name.substr(slash + 1)};
}

control::ObjectPtr object_of(const std::string& resource, const link::FeedEvent& event) {
    // The guard or the scheduler has read it, or will not have to.
    if (resource == "pods" && event.memo) {
        if (const auto pod = decode_pod(*event.text, event.revision, event.memo.get()))
            return control::object_of(**pod, event.text);
    }
    return control::read_object(event.text, event.revision);
}

control::ObjectPtr object_of(const ledger::Object& object, const link::FeedEvent& event) {
    if (const auto pod = object.as<model::Pod>()) return control::object_of(*pod, event.text);
    if (const auto held = object.as<model::Reservation>()) {
        return std::make_shared<const control::Object>(held->meta, event.text);
    }
    return control::read_object(event.text, event.revision);
}

// A pod that is not bound is nobody's owner, and need not be read unless it carries what only bound ones may.
bool says_something(const std::string& pod) {
    return base::mentions(pod, "\"nodeName\"") ||
           std::any_of(model::kPlacementAnnotations.begin(), model::kPlacementAnnotations.end(),
                       [&](std::string_view key) { return base::mentions(pod, key); });
}

bool evicts(const model::Writes& writes) {
    return std::any_of(writes.begin(), writes.end(),
                       [](const auto& write) { return write.resource == "pods" && write.subresource == "eviction"; });
}

}  // namespace

ControllersDriver::ControllersDriver(Doors doors, Reconcilers reconcilers, const control::EvictionPace& pace)
    : session_(std::move(doors.server), std::move(doors.wake)),
      recorder_(session_.server(), std::move(doors.component)),
      reconcilers_(std::move(reconcilers)),
      tokens_(pace) {
    std::set<std::string> followed;
    for (size_t i = 0; i < reconcilers_.size(); ++i) {
        for (const auto& resource : reconcilers_[i]->watches()) watchers_[resource].push_back(i);
        if (reconcilers_[i]->counts()) count_for(i);
        for (auto& target : reconcilers_[i]->standing()) ready_.insert({i, std::move(target)});
    }
    for (const auto& [resource, watchers] : watchers_) followed.insert(resource);
    for (const auto& [resource, kind] : counted_) followed.insert(resource);
    for (const auto& resource : followed) session_.follow(resource, resource_of(resource));
    if (!counters_.empty()) show_ledger(doors.metrics);
}

ControllersDriver::~ControllersDriver() {
    const std::lock_guard lock(shown_->mutex);
    shown_->ledger = nullptr;
}

void ControllersDriver::count_for(size_t reconciler) {
    counters_.push_back(reconciler);
    for (const auto& kind : ledger::kinds()) {
        if (kind.reader == ledger::Reader::Counts) counted_[kind.stored()] = &kind;
    }
}

void ControllersDriver::show_ledger(base::Metrics& metrics) {
    shown_->ledger = &objects_.ledger();
    metrics.add_page([shown = shown_](std::string& out) {
        const std::lock_guard lock(shown->mutex);
        if (shown->ledger != nullptr) append_reservation_metrics(*shown->ledger, out);
    });
}

void ControllersDriver::turn(const Moment& now) {
    const std::lock_guard lock(shown_->mutex);
    now_ = now;
    active_ = session_.poll([this](const auto& resource, const auto& event) { apply(resource, event); });
    active_ = take_answers() || active_;
    pass_time();
    release_seen();
    wake_due();
    if (!stopping_ && session_.synced()) active_ = reconcile_ready() || active_;
}

base::Instant ControllersDriver::next() const {
    if (active_) return now_.now;
    auto latest = now_.now + kLongestWait;
    if (const auto end = objects_.ledger().next_end()) latest = std::min(latest, *end);
    return due_.empty() ? latest : std::min(latest, due_.begin()->first);
}

// What ends concerns those who count.
void ControllersDriver::pass_time() {
    if (counters_.empty()) return;
    for (const auto index : objects_.pass_time(now_.wall, now_.now)) {
        const auto& object = *objects_.ledger().reservation(index).object;
        notify(counters_, model::kReservationResource, control::Object(object.meta, nullptr));
    }
}

void ControllersDriver::apply(const std::string& resource, const link::FeedEvent& event) {
    if (const auto kind = counted_.find(resource); kind != counted_.end()) apply_count(resource, *kind->second, event);
    if (const auto found = watchers_.find(resource); found != watchers_.end()) {
        apply_document(resource, found->second, event);
    }
}

void ControllersDriver::apply_document(const std::string& resource, const Watchers& watchers,
                                       const link::FeedEvent& event) {
    const auto object = object_of(resource, event);
    if (!object) return base::log_warning("Unreadable object", {{"resource", resource}, {"revision", event.revision}});
    const auto& meta = object->meta;
    // Before and after, so that both the old and the new owner hear of it.
    if (const auto old = objects_.find(resource, meta.ns, meta.name)) notify(watchers, resource, *old);
    if (event.type == link::FeedEvent::Type::Gone) return objects_.remove(resource, meta.ns, meta.name);
    objects_.put(resource, object);
    notify(watchers, resource, *object);
}

void ControllersDriver::apply_count(const std::string& resource, const ledger::Kind& kind,
                                    const link::FeedEvent& event) {
    if (event.type == link::FeedEvent::Type::Gone) {
        const auto gone = control::read_object(event.text, event.revision);
        if (!gone) return base::log_error("Unreadable object", {{"resource", resource}, {"revision", event.revision}});
        notify(counters_, resource, *gone);
        return objects_.uncount(kind, gone->meta);
    }
    if (kind.gives<model::Pod>() && !says_something(*event.text)) return;
    const auto decoded = decode(kind, event);
    if (!decoded) return tell_unreadable(kind, event, decoded.error());
    for (const size_t counter : counters_) {
        for (const auto& remark : reconcilers_[counter]->remarks(*decoded)) tell(recorder_, remark, now_.wall);
    }
    const auto object = object_of(*decoded, event);
    notify(counters_, resource, *object);
    objects_.count(kind, *decoded);
    notify(counters_, resource, *object);
}

// A broken object harms itself only, and says so itself.
void ControllersDriver::tell_unreadable(const ledger::Kind& kind, const link::FeedEvent& event, const Error& error) {
    const auto meta = meta_of(event);
    if (!meta) return base::log_error("Unreadable object", {{"error", meta.error()}});
    base::log_warning("Unreadable object", {{"kind", kind.kind}, {"name", meta->full_name()}, {"error", error}});
    std::string version(kind.group);
    if (!version.empty()) version += '/';
    tell(recorder_,
         {version.append(kind.version), std::string(kind.kind), meta->ns, meta->name, meta->uid, true, "Unreadable",
          error.message},
         now_.wall);
}

void ControllersDriver::notify(const Watchers& watchers, const std::string& resource, const control::Object& object) {
    for (const size_t watcher : watchers) {
        for (auto& target : reconcilers_[watcher]->concerned(resource, object, objects_)) {
            enqueue({watcher, std::move(target)});
        }
    }
}

void ControllersDriver::enqueue(const Job& job) {
    if (const auto busy = busy_.find(job); busy != busy_.end()) {
        busy->second.again = true;
    } else {
        ready_.insert(job);
    }
}

// One wake-up a target, the earliest; one that comes too early does no harm.
void ControllersDriver::wake_at(const Job& job, base::Instant at) {
    const auto [found, fresh] = due_at_.try_emplace(job, at);
    if (!fresh && found->second <= at) return;
    if (!fresh) due_.erase({found->second, job});
    found->second = at;
    due_.insert({at, job});
}

void ControllersDriver::wake_due() {
    while (!due_.empty() && due_.begin()->first <= now_.now) {
        const Job job = due_.begin()->second;
        due_.erase(due_.begin());
        due_at_.erase(job);
        enqueue(job);
    }
}

bool ControllersDriver::reconcile_ready() {
    size_t done = 0;
    while (!ready_.empty() && done++ < kTargetsPerRound) {
        const Job job = *ready_.begin();
        ready_.erase(ready_.begin());
        auto outcome = reconcilers_[job.first]->reconcile(job.second, objects_, now_.wall);
        if (evicts(outcome.writes)) {
            // Decided anew when there is a token: its pod may have gone by then.
            if (const auto later = tokens_.take(now_.now)) {
                wake_at(job, *later);
                continue;
            }
        }
        if (outcome.again) {
            wake_at(job, now_.now + std::max(base::Duration::zero(), *outcome.again - now_.wall));
        }
        send(job, std::move(outcome.writes));
    }
    return done > 0;
}

void ControllersDriver::send(const Job& job, model::Writes writes) {
    if (writes.empty()) {
        failures_.erase(job);
        return;
    }
    busy_[job].unanswered = writes.size();
    for (auto& write : writes) {
        Sent sent{job, write.resource, write.verb == model::Write::Verb::Create, std::move(write.event)};
        session_.send(request_for(std::move(write)), std::move(sent));
    }
}

bool ControllersDriver::take_answers() {
    return session_.answers([this](const Sent& sent, const Result<link::Reply>& reply) {
        Busy& busy = busy_[sent.job];
        if (--busy.unanswered == 0) answered_.push_back(sent.job);
        if (reply && reply->ok()) {
            auto& awaited = busy.awaited[sent.resource];
            awaited = std::max(awaited, reply->revision);
            if (sent.event) tell(recorder_, *sent.event, now_.wall);
        } else {
            // A conflict is decided anew and says nothing; what may not be at all, somebody has to see.
            (reply && reply->code == 409 ? busy.moved_on : busy.failed) = true;
            if (reply && (reply->code == 403 || reply->code == 422)) tell_refused(sent, reply->body);
        }
    });
}

// Whoever made the object that is reconciled does not read our log.
void ControllersDriver::tell_refused(const Sent& sent, const std::string& answer) {
    const auto& reconciler = *reconcilers_[sent.job.first];
    base::log_warning("The server refused a write",
                      {{"controller", reconciler.name()}, {"resource", sent.resource}, {"answer", answer}});
    const auto& [ns, name] = sent.job.second;
    const auto object = sent.creates ? objects_.find(reconciler.watches().front(), ns, name) : nullptr;
    if (object == nullptr) return;
    const auto status = base::parse_json(answer);
    std::string why(status ? base::find_string(*status, {"message"}) : std::string_view(answer));
    // Each try has a name of its own; the same words again are one event.
    const auto begin = why.find(fmt::format("\"{}-", name));
    const auto end = begin == std::string::npos ? begin : why.find('"', begin + 1);
    if (end != std::string::npos) why.replace(begin, end - begin, fmt::format("\"{}-", name));
    const Json& document = object->document();
    recorder_.warning({std::string(base::find_string(document, {"apiVersion"})),
                       std::string(base::find_string(document, {"kind"})), ns, name, object->meta.uid},
                      "FailedCreate", fmt::format("Error creating: {}", why), now_.wall);
}

// Targets whose writes have all come back through the feeds may be looked at again.
void ControllersDriver::release_seen() {
    const auto seen = std::partition(answered_.begin(), answered_.end(), [&](const Job& job) {
        const auto& awaited = busy_.find(job)->second.awaited;
        return !std::all_of(awaited.begin(), awaited.end(), [&](const auto& entry) {
            const bool followed = watchers_.contains(entry.first) || counted_.contains(entry.first);
            return !followed || session_.seen(entry.first) >= entry.second;
        });
    });
    for (auto job = seen; job != answered_.end(); ++job) finish(*job);
    answered_.erase(seen, answered_.end());
}

void ControllersDriver::finish(const Job& job) {
    const Busy busy = busy_[job];
    busy_.erase(job);
    // What moved on may have been seen already: then there is nothing to wait for.
    if (busy.failed || (busy.moved_on && !busy.again)) {
        const int failures = ++failures_[job];
        base::Duration wait = kFirstBackoff;
        for (int i = 1; i < failures && wait < kLongestBackoff; ++i) wait *= 2;
        return wake_at(job, now_.now + std::min(wait, kLongestBackoff));
    }
    failures_.erase(job);
    ready_.insert(job);
}

}  // namespace berth::run
