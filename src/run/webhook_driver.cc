#include "run/webhook_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "run/decoded.h"
#include "run/webhook_config.h"

namespace berth::run {
namespace {

constexpr base::Duration kIdle = std::chrono::milliseconds(500);
constexpr base::Duration kAskedAgain = std::chrono::milliseconds(20);
// A binding that was let through is made by then, or never: the API server gives a request a minute.
constexpr base::Duration kAssumed = std::chrono::seconds(65);
constexpr base::Duration kReadAgain = std::chrono::seconds(5);
// The scheduler may have seen the pod before us; the API server waits for five seconds.
constexpr base::Duration kPatience = std::chrono::seconds(3);
std::string text_at(const Json& document, std::initializer_list<std::string_view> path) {
    return std::string(base::find_string(document, path));
}

Result<model::Pod> pod_at(const Json& request, std::string_view key) {
    const Json* object = base::find(request, {key});
    if (object == nullptr || !object->is_object()) return base::bad_request("there is no pod");
    auto pod = TRY(read_pod_here(base::to_text(*object)));
    if (pod.meta.name.empty() || pod.meta.uid.empty()) return base::bad_request("a pod without a name or a uid");
    return pod;
}

// The pod as the binding would make it.
model::Pod bound(model::Pod pod, const std::string& node, const model::Labels& annotations) {
    pod.node = node;
    for (const auto& [key, value] : annotations) pod.meta.annotations.set(key, value);
    return pod;
}

}  // namespace

WebhookDriver::WebhookDriver(Doors doors, WebhookOptions options)
    : doors_(std::move(doors)),
      session_(std::move(doors_.server), doors_.wake),
      options_(std::move(options)),
      keeper_({options_.host, options_.port, options_.path, options_.certificate_life}, "berth-controllers") {
    for (const auto& kind : ledger::kinds()) {
        if (kind.judged()) session_.follow(std::string(kind.kind), resource_of(kind));
    }
}

// Read here and once: whoever sends much to read takes none of the driver's time.
void WebhookDriver::ask(const std::string& body, Answer answer) {
    auto question = read(body);
    if (!question) return answer(400, "this is no AdmissionReview of a Binding or of a pod's resize\n");
    question->answer = std::move(answer);
    {
        const std::lock_guard lock(mutex_);
        asked_.push_back(std::move(*question));
    }
    doors_.wake();
}

Result<WebhookDriver::Question> WebhookDriver::read(const std::string& body) {
    const Json asked = TRY(base::parse_json(body));
    const Json* request = base::find(asked, {"request"});
    const Json* object = request ? base::find(*request, {"object"}) : nullptr;
    if (!object || !object->is_object()) return base::bad_request("there is no object");
    Question question;
    question.uid = text_at(*request, {"uid"});
    const Json* dry = base::find(*request, {"dryRun"});
    question.dry = dry && dry->is_bool() && dry->as_bool();
    if (text_at(*request, {"subResource"}) == "resize") {
        question.what = Resize{TRY(pod_at(*request, "oldObject")), TRY(pod_at(*request, "object"))};
        return question;
    }
    Binding binding{text_at(*request, {"namespace"}),
                    text_at(*object, {"metadata", "name"}),
                    text_at(*object, {"target", "name"}),
                    {}};
    if (const Json* notes = base::find(*object, {"metadata", "annotations"}); notes && notes->is_object()) {
        for (const auto& [key, value] : notes->as_object()) {
            if (value.is_string()) binding.annotations.set(std::string(key), std::string(value.as_string()));
        }
    }
    question.what = std::move(binding);
    return question;
}

void WebhookDriver::turn(const Moment& now) {
    now_ = now;
    session_.hear([this](const auto& kind, const auto& event) { apply(*ledger::kind_named(kind), event); });
    session_.answers([this](const Sent& sent, const Result<link::Reply>& reply) {
        sent.pod.empty() ? keeper_.registered(reply) : take_stored(sent.pod, reply);
    });
    if (stopping_) return close();
    if (!session_.synced()) return;
    read_stale();
    ledger_.pass_time(now.wall, now.now);
    recount_held();
    keep_registered();
    answer_questions();
}

base::Instant WebhookDriver::next() const {
    return now_.now + (open_.empty() ? kIdle : kAskedAgain);
}

// Who asked hears that there is no answer; then nobody asks any more.
void WebhookDriver::close() {
    const auto drop = [this] {
        open_.clear();
        const std::lock_guard lock(mutex_);
        asked_.clear();
    };
    drop();
    doors_.close();
    drop();
}

// ---- what is stored

void WebhookDriver::apply(const ledger::Kind& kind, const link::FeedEvent& event) {
    const auto meta = meta_of(event);
    if (!meta) return base::log_error("Unreadable object", {{"error", meta.error()}});
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    if (kind.gives<model::Reservation>() || kind.gives<model::Device>()) held_changed_ = true;
    if (kind.gives<model::Pod>()) {
        waiting_.erase(meta->full_name());
        if (gone) assumed_.erase(meta->uid);
    }
    if (gone) return kind.remove(ledger_, *meta);
    const auto object = decode(kind, event);
    if (!object) return base::log_error("Unreadable object", {{"error", object.error()}});
    if (const auto pod = object->as<model::Pod>()) return apply_pod(*pod);
    kind.put(ledger_, *object);
}

void WebhookDriver::apply_pod(const model::Pod& pod) {
    const auto assumed = assumed_.find(pod.meta.uid);
    if (assumed != assumed_.end() && pod.meta.revision <= assumed->second.from) return;
    if (!pod.node.empty() || pod.terminal()) {
        assumed_.erase(pod.meta.uid);
        return ledger_.put(pod);
    }
    // What was let through stays counted: this is older news.
    waiting_.insert_or_assign(pod.meta.full_name(), pod);
}

// What was let through and is not seen is read: our feed may be behind, and its room must not be given twice.
void WebhookDriver::read_stale() {
    for (auto& [uid, assumed] : assumed_) {
        if (assumed.reading || now_.now < assumed.until) continue;
        assumed.reading = true;
        const auto& meta = assumed.pod.meta;
        session_.send({"GET", fmt::format("/api/v1/namespaces/{}/pods/{}", meta.ns, meta.name)}, Sent{uid});
    }
}

void WebhookDriver::take_stored(const std::string& uid, const Result<link::Reply>& reply) {
    const auto found = assumed_.find(uid);
    if (found == assumed_.end()) return;
    const auto pod =
        reply && reply->ok() ? read_pod_here(reply->body) : Result<model::Pod>(base::internal("no answer"));
    const bool gone = (reply && reply->code == 404) || (pod && pod->meta.uid != uid);
    if (!gone && !pod) {
        found->second.reading = false;
        found->second.until = now_.now + kReadAgain;
        return;
    }
    if (gone || pod->node.empty()) ledger_.remove_pod(uid);
    assumed_.erase(found);
    if (!gone) apply_pod(*pod);
}

void WebhookDriver::recount_held() {
    if (!std::exchange(held_changed_, false)) return;
    held_.clear();
    for (const auto& [uid, index] : ledger_.reservations()) {
        const auto& object = ledger_.reservation(index).object;
        if (object && model::holds_room(*object) && !object->node.empty()) held_.insert(object->node);
    }
    ledger_.devices().each_known([this](const std::string& node) { held_.insert(node); });
}

// ---- questions

void WebhookDriver::answer_questions() {
    {
        const std::lock_guard lock(mutex_);
        for (auto& question : asked_) open_.push_back(std::move(question));
        asked_.clear();
    }
    std::erase_if(open_, [this](Question& question) { return try_answer(question); });
}

// False: the pod has not come yet.
bool WebhookDriver::try_answer(Question& question) {
    auto verdict = std::visit([&](const auto& what) { return judge(what, question.dry); }, question.what);
    if (!verdict) {
        if (!question.since) question.since = now_.now;
        if (now_.now < *question.since + kPatience) return false;
        verdict = base::conflict("the pod is not known here yet");
    }
    question.answer(200, review_answer(question.uid, verdict->ok() ? "" : verdict->error().message));
    return true;
}

// None: the pod has not come yet. What is let through is counted, unless it is only tried.
std::optional<Status> WebhookDriver::judge(const Binding& binding, bool dry) {
    const bool names_parts = std::any_of(model::kWhichAnnotations.begin(), model::kWhichAnnotations.end(),
                                         [&](const auto& key) { return binding.annotations.has(key); });
    if (!names_parts && !held_.contains(binding.node)) return Status();
    const auto found = waiting_.find(fmt::format("{}/{}", binding.ns, binding.pod));
    if (found == waiting_.end()) return std::nullopt;
    const model::Pod pod = bound(found->second, binding.node, binding.annotations);
    const Status verdict = judge_bind(pod);
    if (verdict.ok() && !dry) assume(pod, 0);
    return verdict;
}

Status WebhookDriver::judge_bind(const model::Pod& pod) const {
    if (const auto other = assumed_.find(pod.meta.uid); other != assumed_.end()) {
        if (other->second.pod.node == pod.node) return {};
        return base::conflict(
            fmt::format("pod \"{}\" is just being bound to node \"{}\"", pod.meta.full_name(), other->second.pod.node));
    }
    return options_.rules.judge_bind(pod, ledger_);
}

// What it leaves is free when the news say so, and of two that are under way either may be made: the most counts.
std::optional<Status> WebhookDriver::judge(const Resize& resize, bool dry) {
    const auto& [before, after] = resize;
    if (!held_.contains(after.node) || after.terminal()) return Status();
    const auto index = ledger_.find_pod(after.meta.uid);
    if (index == ledger::kNone) return std::nullopt;
    const Status verdict = options_.rules.judge_change(after, index, ledger_, [&] { return before; });
    if (!verdict.ok() || dry) return verdict;
    model::PodSpec most = *after.spec;
    most.requests.max(before.spec->requests);
    most.requests.max(ledger_.pod(index).spec->requests);
    model::Pod grown = after;
    grown.spec = std::make_shared<const model::PodSpec>(std::move(most));
    assume(grown, before.meta.revision);
    return verdict;
}

void WebhookDriver::assume(const model::Pod& pod, uint64_t from) {
    ledger_.put(pod);
    assumed_.insert_or_assign(pod.meta.uid, Assumed{now_.now + kAssumed, pod, from});
}

// ---- certificate, server, configuration

void WebhookDriver::keep_registered() {
    const auto wanted = [this](const std::string& url, const std::string& ca) {
        const WebhookTarget target{url, ca, options_.trusted};
        return std::vector<WebhookRegistration>{
            {fmt::format("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{}",
                         kWebhookConfiguration),
             webhook_configuration(target, held_)}};
    };
    for (auto& request : keeper_.turn(now_.now, session_.under_way() > 0, doors_, [this] { close(); }, wanted))
        session_.send(std::move(request), Sent{});
}

}  // namespace berth::run
