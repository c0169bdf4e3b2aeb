#include "run/arbitrator_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "control/shares.h"
#include "run/decoded.h"
#include "run/writes.h"

namespace berth::run {
namespace {

constexpr base::Duration kLongestRest = std::chrono::seconds(5);
// What was written and does not come back: the feed is away, and what it tells when it is here again decides.
constexpr base::Duration kSeenAtLast = std::chrono::seconds(10);
constexpr base::Duration kExactEvery = std::chrono::seconds(60);

struct Followed {
    std::string_view resource, kind;
    link::Resource where;
};

// What shares are computed from, besides what every decision reads.
const std::vector<Followed>& shares_follow() {
    static const std::vector<Followed> all{
        {"resourcequotas", "ResourceQuota", {"", "v1", "resourcequotas"}},
        {control::kConsumerResource, "Consumer", {std::string(model::kSharesGroup), "v1", "consumers"}},
        {control::kAllocationResource, "Allocation", {std::string(model::kSharesGroup), "v1", "allocations"}}};
    return all;
}

std::string_view kind_of(const std::string& resource) {
    for (const auto& followed : shares_follow()) {
        if (followed.resource == resource) return followed.kind;
    }
    return resource;
}

// The text of a feed names neither kind nor version where they are the same for all.
Json whole(const ledger::Kind* known, std::string_view kind, Json document) {
    JsonObject& object = document.as_object();
    object["kind"] = kind;
    std::string version = known == nullptr ? "v1" : std::string(known->version);
    const std::string_view group =
        known != nullptr ? known->group : (kind == "ResourceQuota" ? std::string_view() : model::kSharesGroup);
    object["apiVersion"] = group.empty() ? version : fmt::format("{}/{}", group, version);
    return document;
}

model::Write eviction_of(const share::ScenePod& pod) {
    const JsonObject meta{{"name", pod.name}, {"namespace", pod.ns}};
    const JsonObject options{{"preconditions", JsonObject{{"uid", pod.uid}}}};
    model::Write write = model::create_object(
        "pods", pod.ns,
        JsonObject{{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", meta}, {"deleteOptions", options}});
    write.name = pod.name;
    write.subresource = "eviction";
    return write;
}

std::string message_in(const std::string& body) {
    const auto status = base::parse_json(body);
    std::string out(status ? base::find_string(*status, {"message"}) : std::string_view(body));
    const Json* causes = status ? base::find(*status, {"details", "causes"}) : nullptr;
    if (causes != nullptr && causes->is_array()) {
        for (const auto& cause : causes->as_array()) {
            const auto said = base::find_string(cause, {"message"});
            if (!said.empty()) out = said;
        }
    }
    return out;
}

}  // namespace

ArbitratorDriver::ArbitratorDriver(Doors doors, ArbitratorOptions options)
    : session_(std::move(doors.server), std::move(doors.wake)),
      recorder_(session_.server(), "berth-arbitrator"),
      options_(std::move(options)),
      desk_(std::move(doors.desk)),
      metrics_(doors.metrics),
      reclaiming_(options_.grace, options_.limits) {
    for (const auto& kind : ledger::kinds()) {
        if (kind.reader != ledger::Reader::Shares) session_.follow(std::string(kind.kind), resource_of(kind));
    }
    for (const auto& followed : shares_follow()) session_.follow(std::string(followed.resource), followed.where);
}

ArbitratorDriver::~ArbitratorDriver() {
    if (desk_) desk_->close();
}

void ArbitratorDriver::turn(const Moment& now) {
    now_ = now;
    if (!gathered_) gathered_.emplace(now.wall);
    active_ = session_.poll([this](const auto& resource, const auto& event) { apply(resource, event); });
    active_ = session_.answers([this](const Sent& sent, const auto& reply) { take_answer(sent, reply); }) || active_;
    if (stopping_ && desk_) desk_->close();
    if (stopping_ || !session_.synced() || !due()) return;
    cycle();
    active_ = true;
}

base::Instant ArbitratorDriver::next() const {
    if (active_) return now_.now;
    if (!session_.synced() || session_.under_way() > 0) return now_.now + options_.cycle;
    const bool more = dirty_ || (desk_ && desk_->asks_for_cycle());
    base::Duration rest = more ? last_ + options_.cycle - now_.now : kLongestRest;
    for (const auto& at : {reclaiming_.next(), gathered_->next_change()}) {
        if (at) rest = std::min(rest, *at - now_.wall);
    }
    return std::max(now_.now + base::Duration(1), std::max(now_.now + rest, last_ + options_.cycle));
}

bool ArbitratorDriver::due() const {
    if (session_.under_way() > 0 || (cycles_ > 0 && now_.now < last_ + options_.cycle)) return false;
    if (!written_is_seen() && now_.now < last_ + kSeenAtLast) return false;
    const auto passed = [&](const std::optional<base::Time>& at) { return at && *at <= now_.wall; };
    return dirty_ || passed(reclaiming_.next()) || passed(gathered_->next_change()) ||
           (desk_ && desk_->asks_for_cycle());
}

bool ArbitratorDriver::written_is_seen() const {
    return std::all_of(awaited_.begin(), awaited_.end(),
                       [&](const auto& entry) { return session_.seen(entry.first) >= entry.second; });
}

// ---- what comes

void ArbitratorDriver::apply(const std::string& resource, const link::FeedEvent& event) {
    const auto meta = meta_of(event);
    if (!meta) return base::log_error("Unreadable object", {{"resource", resource}, {"error", meta.error()}});
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    if (resource == "Namespace" || resource == control::kConsumerResource || resource == control::kAllocationResource)
        apply_owned(resource, event);
    if (resource == control::kAllocationResource) return;
    dirty_ = true;
    const std::string kind(kind_of(resource));
    if (gone) return gathered_->remove(kind, meta->ns, meta->name);
    const auto document = base::parse_json(*event.text);
    if (!document || !document->is_object())
        return base::log_error("Unreadable object", {{"resource", resource}, {"name", meta->full_name()}});
    const auto put = gathered_->put(whole(ledger::kind_named(kind), kind, *document));
    if (!put)
        base::log_warning("Unreadable object", {{"kind", kind}, {"name", meta->full_name()}, {"error", put.error()}});
}

void ArbitratorDriver::apply_owned(const std::string& resource, const link::FeedEvent& event) {
    auto meta = *meta_of(event);
    meta.revision = event.revision;
    const std::string name = meta.name;
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    if (resource == control::kAllocationResource) {
        // Somebody else's change is undone; our own says what we want.
        dirty_ = dirty_ || gone || event.revision > awaited_[resource];
        if (gone) {
            allocations_.erase(name);
        } else if (auto document = base::parse_json(*event.text)) {
            allocations_.insert_or_assign(name, StoredAllocation{std::move(meta), std::move(*document)});
        }
        return;
    }
    auto& known = resource == "Namespace" ? namespaces_ : consumers_;
    if (gone) {
        known.erase(name);
    } else {
        known.insert_or_assign(name, std::move(meta));
    }
}

void ArbitratorDriver::take_answer(const Sent& sent, const Result<link::Reply>& reply) {
    if (!sent.evicted.empty()) return take_eviction(sent.evicted, reply);
    if (reply && reply->ok()) {
        auto& awaited = awaited_[sent.resource];
        awaited = std::max(awaited, reply->revision);
        return;
    }
    // What moved on is seen and decided anew.
    dirty_ = true;
    const bool moved_on = reply && (reply->code == 404 || reply->code == 409);
    if (moved_on) return;
    base::log_warning("The server refused a write",
                      {{"write", sent.what}, {"answer", reply ? message_in(reply->body) : reply.error().message}});
}

void ArbitratorDriver::take_eviction(const std::string& uid, const Result<link::Reply>& reply) {
    const auto found = evicted_.find(uid);
    if (found == evicted_.end()) return;
    const model::Event event = std::move(found->second);
    const std::string name = event.ns + "/" + event.name;
    evicted_.erase(found);
    dirty_ = true;
    if (reply && reply->ok()) {
        tell(recorder_, event, now_.wall);
        return metrics_.evicted("reclaimed");
    }
    if (!reply) {
        // Nobody knows: if it took effect it is seen to go.
        metrics_.evicted("unknown");
        return base::log_warning("Nobody knows whether a pod was evicted", {{"pod", name}, {"error", reply.error()}});
    }
    if (reply->code == 404 || reply->code == 409) {
        metrics_.evicted("gone");
        return reclaiming_.failed(uid);
    }
    metrics_.evicted(reply->code == 429 ? "budget" : "refused");
    base::log_info("A pod does not let itself be evicted", {{"pod", name}, {"answer", message_in(reply->body)}});
    reclaiming_.refused(uid, message_in(reply->body), now_.wall);
}

// ---- a cycle

void ArbitratorDriver::cycle() {
    const bool first = cycles_++ == 0;
    last_ = now_.now;
    dirty_ = false;
    if (first) remember_published();
    keep_consumers();
    gathered_->advance_to(now_.wall);
    share::Scene scene = gathered_->take(options_.settings.limits_factor.has_value());
    share::Settings settings = options_.settings;
    settings.now = now_.wall;
    reclaiming_.prepare(scene, now_.wall);
    mark_granted(scene);
    const share::Answer answer = share::answer(scene, settings);
    if (first) {
        dirty_ = true;  // the next one takes back
    } else {
        evict(scene, reclaiming_.due(scene, answer, now_.wall));
    }
    // First who asks, then who reads: whoever has seen an Allocation is answered by what it says.
    if (desk_) desk_->show(scene, settings, answer, now_.now);
    publish(answer);
    if (options_.gates) open_gates(scene, answer);
    tell_trouble(answer);
    metrics_.show(answer);
}

// A leader goes on where the one before it stood.
void ArbitratorDriver::remember_published() {
    for (const auto& [name, allocation] : allocations_) {
        const auto known = remembered(allocation.document);
        reclaiming_.remember(name, known.overused_since, known.deadline);
    }
}

void ArbitratorDriver::keep_consumers() {
    for (auto& write : control::keep_consumers(namespaces_, consumers_)) {
        const auto made = base::find_string(write.body, {"metadata", "name"});
        std::string what = fmt::format("Consumer {}", write.name.empty() ? std::string(made) : write.name);
        send(std::move(write), {std::move(what), control::kConsumerResource, "", ""});
    }
}

// Whoever has no gate any more starts without asking, where schedulers do not ask.
void ArbitratorDriver::mark_granted(share::Scene& scene) {
    const auto in_flight = desk_ ? desk_->in_flight(now_.now) : std::set<std::string>();
    std::set<std::string> still;
    for (auto& pod : scene.pods) {
        if (pod.placed) continue;
        const bool opened = options_.gates && ungated_.contains(pod.uid);
        if (opened) still.insert(pod.uid);
        const bool passed = options_.gates && !options_.extender && !pod.held && !pod.gated;
        pod.granted = opened || passed || in_flight.contains(pod.uid);
    }
    ungated_ = std::move(still);
}

void ArbitratorDriver::publish(const share::Answer& answer) {
    std::set<std::string_view> known;
    const auto refusals = reclaiming_.refusals();
    for (const auto& account : answer.accounts) {
        known.insert(account.name);
        const auto standing = reclaiming_.standings().find(account.name);
        const auto consumer = consumers_.find(account.name);
        const auto stored = allocations_.find(account.name);
        Published wanted{account, standing == reclaiming_.standings().end() ? nullptr : &standing->second,
                         account.conditions, answer.capacity, consumer == consumers_.end() ? "" : consumer->second.uid};
        const auto refused = refusals.find(account.name);
        const bool said = std::any_of(wanted.conditions.begin(), wanted.conditions.end(),
                                      [](const auto& one) { return one.type == "ReclaimBlockedByPDB"; });
        if (refused != refusals.end() && !said) wanted.conditions.push_back({"ReclaimBlockedByPDB", refused->second});
        if (const auto broken = gathered_->broken_consumers().find(account.name);
            broken != gathered_->broken_consumers().end())
            wanted.conditions.push_back({"ConsumerUnreadable", broken->second});
        auto& exact_at = published_[account.name];
        const bool exact = now_.wall - exact_at >= kExactEvery;
        if (exact) exact_at = now_.wall;
        for (auto& write :
             allocation_writes(wanted, stored == allocations_.end() ? nullptr : &stored->second, now_.wall, exact))
            send(std::move(write), {fmt::format("Allocation {}", account.name), control::kAllocationResource, "", ""});
    }
    for (const auto& [name, stored] : allocations_) {
        if (known.contains(name)) continue;
        published_.erase(name);
        send(model::delete_object(control::kAllocationResource, stored.meta),
             {fmt::format("Allocation {}", name), control::kAllocationResource, "", ""});
    }
}

void ArbitratorDriver::evict(const share::Scene& scene, const std::vector<share::Victim>& victims) {
    for (const auto& victim : victims) {
        const auto& pod = scene.pods[victim.pod];
        const auto& claim = scene.pods[victim.claim];
        const std::string why =
            fmt::format("{} has more than it deserves, and pod {} has a right to the room", pod.ns, claim.full_name());
        base::log_info(options_.dry_run ? "A pod would be evicted" : "A pod is evicted",
                       {{"pod", pod.full_name()}, {"for", claim.full_name()}});
        if (options_.dry_run) continue;
        evicted_[pod.uid] = {"v1", "Pod", pod.ns, pod.name, pod.uid, false, "Reclaimed", why};
        send(eviction_of(pod), {fmt::format("eviction of {}", pod.full_name()), "pods", pod.uid, ""});
    }
}

void ArbitratorDriver::open_gates(const share::Scene& scene, const share::Answer& answer) {
    for (const auto& admission : answer.admissions) {
        const auto& pod = scene.pods[admission.pod];
        if (!admission.admitted || !pod.held || ungated_.contains(pod.uid)) continue;
        model::Meta meta;
        meta.ns = pod.ns;
        meta.name = pod.name;
        meta.uid = pod.uid;
        const JsonObject gate{{"name", model::kShareGate}, {"$patch", "delete"}};
        model::Write write =
            model::patch_object("pods", meta, JsonObject{{"spec", JsonObject{{"schedulingGates", JsonArray{gate}}}}});
        write.verb = model::Write::Verb::StrategicPatch;
        ungated_.insert(pod.uid);
        send(std::move(write), {fmt::format("gate of {}", pod.full_name()), "Pod", "", ""});
    }
}

// A sentence for each Consumer that cannot be read, to whoever wrote it.
void ArbitratorDriver::tell_trouble(const share::Answer& answer) {
    std::map<std::string, std::string> told;
    for (const auto& [name, why] : gathered_->broken_consumers()) {
        const auto consumer = consumers_.find(name);
        if (consumer == consumers_.end()) continue;
        told[name] = why;
        const auto before = told_.find(name);
        if (options_.dry_run || (before != told_.end() && before->second == why)) continue;
        tell(recorder_,
             {std::string(model::kSharesGroup) + "/v1", "Consumer", "", name, consumer->second.uid, true, "Unreadable",
              why},
             now_.wall);
    }
    for (const auto& account : answer.accounts) {
        const auto consumer = consumers_.find(account.name);
        if (consumer == consumers_.end() || !account.overused) continue;
        const auto standing = reclaiming_.standings().find(account.name);
        const bool begins = standing != reclaiming_.standings().end() && standing->second.wanted_since == now_.wall;
        if (!begins || options_.dry_run) continue;
        tell(
            recorder_,
            {std::string(model::kSharesGroup) + "/v1", "Consumer", "", account.name, consumer->second.uid, false,
             "Overused", fmt::format("others need {} of what it has above its share", standing->second.amounts.text())},
            now_.wall);
    }
    told_ = std::move(told);
}

void ArbitratorDriver::send(model::Write write, Sent sent) {
    if (options_.dry_run) return;
    session_.send(request_for(std::move(write)), std::move(sent));
}

}  // namespace berth::run
