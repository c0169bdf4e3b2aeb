#include "run/controllers_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "run/decoded.h"

namespace berth::run {
namespace {

constexpr size_t kTargetsPerRound = 128;
constexpr base::Duration kLongestWait = std::chrono::seconds(1);
constexpr base::Duration kFirstBackoff = std::chrono::milliseconds(50);
constexpr base::Duration kLongestBackoff = std::chrono::seconds(5);

// "apps/replicasets" -> its path without a name.
std::string path_of(const control::Action& action) {
    const auto slash = action.resource.find('/');
    const bool core = slash == std::string::npos;
    std::string path =
        core ? "/api/" + action.version : "/apis/" + action.resource.substr(0, slash) + "/" + action.version;
    if (!action.ns.empty()) path += "/namespaces/" + action.ns;
    path += "/" + (core ? action.resource : action.resource.substr(slash + 1));
    if (!action.name.empty()) path += "/" + action.name;
    if (!action.subresource.empty()) path += "/" + action.subresource;
    return path;
}

link::Request request_for(const control::Action& action) {
    const std::string body = action.text.empty() ? base::to_text(action.body) : action.text;
    switch (action.verb) {
        case control::Action::Verb::Create:
            return {"POST", path_of(action), body};
        case control::Action::Verb::Replace:
            return {"PUT", path_of(action), body};
        case control::Action::Verb::MergePatch:
            return {"PATCH", path_of(action), body, "application/merge-patch+json"};
        case control::Action::Verb::Delete:
            return {"DELETE", path_of(action), body};
    }
    return {};
}

link::Resource resource_of(const std::string& name) {
    const auto slash = name.find('/');
    if (slash == std::string::npos) return {"", "v1", name};
    const std::string group = name.substr(0, slash);
    return {group, group == "scheduling.koordinator.sh" ? "v1alpha1" : "v1", name.substr(slash + 1)};
}

control::ObjectPtr object_of(const std::string& resource, const link::FeedEvent& event) {
    // The guard or the scheduler has read it, or will not have to.
    if (resource == "pods" && event.memo) {
        if (const auto pod = decode_pod(*event.text, event.revision, event.memo.get()))
            return control::object_of(**pod, event.text);
    }
    return control::read_object(event.text, event.revision);
}

}  // namespace

ControllersDriver::ControllersDriver(std::unique_ptr<link::ApiClient> server, link::Wake wake, Reconcilers reconcilers)
    : session_(std::move(server), std::move(wake)),
      recorder_(session_.server(), "berth-controllers"),
      reconcilers_(std::move(reconcilers)) {
    for (size_t i = 0; i < reconcilers_.size(); ++i) {
        for (const auto& resource : reconcilers_[i]->watches()) watchers_[resource].push_back(i);
    }
    for (const auto& [resource, watchers] : watchers_) session_.follow(resource, resource_of(resource));
}

void ControllersDriver::turn(const Moment& now) {
    now_ = now;
    active_ = session_.poll([this](const auto& resource, const auto& event) { apply(resource, event); });
    active_ = take_answers() || active_;
    settle_seen();
    wake_due();
    if (!stopping_ && session_.synced()) active_ = reconcile_ready() || active_;
}

base::Instant ControllersDriver::next() const {
    if (active_) return now_.now;
    const auto latest = now_.now + kLongestWait;
    return due_.empty() ? latest : std::min(latest, due_.begin()->first);
}

void ControllersDriver::apply(const std::string& resource, const link::FeedEvent& event) {
    const auto object = object_of(resource, event);
    if (!object) return base::log_warning("Unreadable object", {{"resource", resource}, {"revision", event.revision}});
    const auto& meta = object->meta;
    // Before and after, so that both the old and the new owner hear of it.
    if (const auto old = objects_.find(resource, meta.ns, meta.name)) tell(resource, *old);
    if (event.type == link::FeedEvent::Type::Gone) return objects_.remove(resource, meta.ns, meta.name);
    objects_.put(resource, object);
    tell(resource, *object);
}

void ControllersDriver::tell(const std::string& resource, const control::Object& object) {
    for (const size_t watcher : watchers_[resource]) {
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
        if (outcome.again) {
            wake_at(job, now_.now + std::max(base::Duration::zero(), *outcome.again - now_.wall));
        }
        send(job, std::move(outcome.actions));
    }
    return done > 0;
}

void ControllersDriver::send(const Job& job, control::Actions actions) {
    if (actions.empty()) {
        failures_.erase(job);
        return;
    }
    busy_[job].unanswered = actions.size();
    for (const auto& action : actions) {
        session_.send(request_for(action), {job, action.resource, action.verb == control::Action::Verb::Create});
    }
}

bool ControllersDriver::take_answers() {
    return session_.answers([this](const Sent& sent, const Result<link::Reply>& reply) {
        Busy& busy = busy_[sent.job];
        if (--busy.unanswered == 0) answered_.push_back(sent.job);
        if (reply && reply->ok()) {
            auto& awaited = busy.awaited[sent.resource];
            awaited = std::max(awaited, reply->revision);
        } else {
            busy.failed = true;
            // A conflict is decided anew and says nothing; what may not be at all, somebody has to see.
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
void ControllersDriver::settle_seen() {
    const auto seen = std::partition(answered_.begin(), answered_.end(), [&](const Job& job) {
        const auto& awaited = busy_.find(job)->second.awaited;
        return !std::all_of(awaited.begin(), awaited.end(), [&](const auto& entry) {
            return !watchers_.contains(entry.first) || session_.seen(entry.first) >= entry.second;
        });
    });
    for (auto job = seen; job != answered_.end(); ++job) finish(*job);
    answered_.erase(seen, answered_.end());
}

void ControllersDriver::finish(const Job& job) {
    const Busy busy = busy_[job];
    busy_.erase(job);
    if (busy.failed) {
        const int failures = ++failures_[job];
        base::Duration wait = kFirstBackoff;
        for (int i = 1; i < failures && wait < kLongestBackoff; ++i) wait *= 2;
        return wake_at(job, now_.now + std::min(wait, kLongestBackoff));
    }
    failures_.erase(job);
    ready_.insert(job);
}

}  // namespace berth::run
