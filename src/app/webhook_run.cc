#include "app/webhook_run.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_view.h"
#include "base/log.h"
#include "base/thread.h"
#include "ledger/intake.h"
#include "model/node.h"
#include "model/reader.h"
#include "run/webhook_config.h"

namespace berth::app {
namespace {

constexpr base::Duration kIdle = std::chrono::milliseconds(500);
// A binding that was let through is made by then, or never: the API server gives a request a minute.
constexpr base::Duration kAssumed = std::chrono::seconds(65);
constexpr base::Duration kReadAgain = std::chrono::seconds(5);
// The scheduler may have seen the pod before us; the API server waits for five seconds.
constexpr base::Duration kPatience = std::chrono::seconds(3);
constexpr size_t kMostReview = 256u << 10;  // of a Binding: names, and annotations of a few kilobytes
constexpr base::Duration kBetweenWrites = std::chrono::milliseconds(500);
constexpr base::Duration kAssert = std::chrono::seconds(60);  // somebody may have changed or deleted it

std::string review(std::string_view uid, bool allowed, const std::string& why) {
    JsonObject response{{"uid", uid}, {"allowed", allowed}};
    if (!allowed) response["status"] = JsonObject{{"code", 409}, {"reason", "Conflict"}, {"message", why}};
    return base::to_text(Json(JsonObject{
        {"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}}));
}

std::string text_at(const Json& document, std::initializer_list<std::string_view> path) {
    return std::string(base::find_string(document, path));
}

// The pod as the binding would make it.
model::Pod bound(model::Pod pod, const Json& binding) {
    pod.node = text_at(binding, {"target", "name"});
    if (const Json* notes = base::find(binding, {"metadata", "annotations"}); notes && notes->is_object()) {
        for (const auto& [key, value] : notes->as_object()) {
            if (value.is_string()) pod.meta.annotations.set(std::string(key), std::string(value.as_string()));
        }
    }
    return pod;
}

}  // namespace

WebhookRun::WebhookRun(std::unique_ptr<link::Server> server, WebhookOptions options, const base::Clock& clock)
    : traffic_(std::move(server)), options_(std::move(options)), clock_(clock) {
    traffic_.follow("Node", {"", "v1", "nodes"});
    traffic_.follow("Pod", {"", "v1", "pods"});
    traffic_.follow("Reservation", {"scheduling.koordinator.sh", "v1alpha1", "reservations"});
    traffic_.follow("PersistentVolume", {"", "v1", "persistentvolumes"});
    traffic_.follow("PersistentVolumeClaim", {"", "v1", "persistentvolumeclaims"});
    traffic_.follow("StorageClass", {"storage.k8s.io", "v1", "storageclasses"});
    traffic_.follow("CSINode", {"storage.k8s.io", "v1", "csinodes"});
    traffic_.follow("VolumeAttachment", {"storage.k8s.io", "v1", "volumeattachments"});
    thread_ = base::named_thread("webhook", [this] { run(); });
}

WebhookRun::~WebhookRun() {
    traffic_.stop();
    thread_.join();
}

void WebhookRun::run() {
    while (true) {
        traffic_.poll([this](const auto& kind, const auto& event) { apply(kind, event); });
        traffic_.answers([this](const Sent& sent, const Result<link::Reply>& reply) {
            sent.pod.empty() ? registered(reply) : take_stored(sent.pod, reply);
        });
        if (traffic_.stopping()) {
            close();
            if (traffic_.under_way() == 0) return;
        } else if (traffic_.synced()) {
            read_stale();
            ledger_.pass_time(clock_.wall(), clock_.now());
            recount_held();
            keep_certificate();
            keep_registered();
            answer_questions();
        }
        traffic_.wait(open_.empty() ? kIdle : std::chrono::milliseconds(20));
    }
}

// Who asked hears that there is no answer; then nobody asks any more.
void WebhookRun::close() {
    const auto drop = [this] {
        open_.clear();
        const std::lock_guard lock(mutex_);
        asked_.clear();
    };
    drop();
    if (!http_) return;
    http_->stop();
    drop();
    http_.reset();
}

// ---- what is stored

void WebhookRun::apply(const std::string& kind, const link::FeedEvent& event) {
    const bool gone = event.type == link::FeedEvent::Type::Gone;
    thread_local base::JsonParser parser;  // its buffers are large
    const auto view = parser.parse(*event.text);
    if (!view) return base::log_error("Unreadable object", {{"error", view.error()}});
    std::string trouble;
    const model::Meta meta = model::read_meta(model::Reader(*view, trouble));
    if (kind == "Node") {
        if (gone) return ledger_.remove_node(meta.name);
        auto node = model::read_node(*view);
        if (node) ledger_.put(std::make_shared<const model::Node>(std::move(*node)));
    } else if (kind == "Pod") {
        waiting_.erase(meta.full_name());
        if (gone) {
            assumed_.erase(meta.uid);
            return ledger_.remove_pod(meta.uid);
        }
        auto pod = model::read_pod(*view);
        if (pod) apply_pod(std::move(*pod));
    } else if (kind != "Reservation") {
        if (gone) return ledger::remove_supporting(kind, meta.ns, meta.name, ledger_);
        if (const auto put = ledger::put_supporting(kind, *view, ledger_, event.revision); !put) {
            base::log_error("Unreadable object", {{"error", put.error()}});
        }
    } else {
        held_changed_ = true;
        if (gone) return ledger_.remove_reservation(meta.uid);
        auto reservation = model::read_reservation(*view);
        if (!reservation) return;
        reservation->meta.revision = event.revision;
        ledger_.put(std::make_shared<const model::Reservation>(std::move(*reservation)));
    }
}

void WebhookRun::apply_pod(model::Pod pod) {
    if (!pod.node.empty() || pod.terminal()) {
        assumed_.erase(pod.meta.uid);
        return ledger_.put(pod);
    }
    // What was let through stays counted: this is older news.
    waiting_.insert_or_assign(pod.meta.full_name(), std::move(pod));
}

// What was let through and is not seen is read: our feed may be behind, and its room must not be given twice.
void WebhookRun::read_stale() {
    const base::Instant now = clock_.now();
    for (auto& [uid, assumed] : assumed_) {
        if (assumed.reading || now < assumed.until) continue;
        assumed.reading = true;
        const auto& meta = assumed.pod.meta;
        traffic_.send({"GET", fmt::format("/api/v1/namespaces/{}/pods/{}", meta.ns, meta.name)}, Sent{uid});
    }
}

void WebhookRun::take_stored(const std::string& uid, const Result<link::Reply>& reply) {
    const auto found = assumed_.find(uid);
    if (found == assumed_.end()) return;
    thread_local base::JsonParser parser;  // its buffers are large
    const auto view = reply && reply->ok() ? parser.parse(reply->body) : Result<JsonView>(base::internal("no answer"));
    auto pod = view ? model::read_pod(*view) : Result<model::Pod>(view.error());
    const bool gone = (reply && reply->code == 404) || (pod && pod->meta.uid != uid);
    if (!gone && !pod) {
        found->second.reading = false;
        found->second.until = clock_.now() + kReadAgain;
        return;
    }
    if (gone || pod->node.empty()) ledger_.remove_pod(uid);
    assumed_.erase(found);
    if (!gone) apply_pod(std::move(*pod));
}

void WebhookRun::recount_held() {
    if (!std::exchange(held_changed_, false)) return;
    held_.clear();
    for (const auto& [uid, index] : ledger_.reservations()) {
        const auto& object = ledger_.reservation(index).object;
        if (object && object->live() && !object->node.empty()) held_.insert(object->node);
    }
}

// ---- questions

void WebhookRun::answer_questions() {
    {
        const std::lock_guard lock(mutex_);
        for (auto& question : asked_) open_.push_back(std::move(question));
        asked_.clear();
    }
    std::erase_if(open_, [this](Question& question) { return try_answer(question); });
}

// False: the pod has not come yet.
bool WebhookRun::try_answer(Question& question) {
    const auto asked = base::parse_json(question.body);
    const Json* request = asked ? base::find(*asked, {"request"}) : nullptr;
    const Json* binding = request ? base::find(*request, {"object"}) : nullptr;
    if (!binding || !binding->is_object()) {
        question.responder.respond({400, "text/plain; charset=utf-8", {}, "this is no AdmissionReview of a Binding\n"});
        return true;
    }
    const auto answer = [&](const Status& verdict) {
        question.responder.respond(
            {200,
             "application/json",
             {},
             review(text_at(*request, {"uid"}), verdict.ok(), verdict.ok() ? "" : verdict.error().message)});
        return true;
    };
    if (!held_.contains(text_at(*binding, {"target", "name"}))) return answer({});
    const auto name = fmt::format("{}/{}", text_at(*request, {"namespace"}), text_at(*binding, {"metadata", "name"}));
    const auto found = waiting_.find(name);
    if (found == waiting_.end()) {
        if (clock_.now() < question.since + kPatience) return false;
        return answer(base::conflict(fmt::format("pod \"{}\" is not known to be waiting for a node", name)));
    }
    const model::Pod pod = bound(found->second, *binding);
    const Status verdict = judge(pod);
    const Json* dry = base::find(*request, {"dryRun"});
    if (verdict.ok() && !(dry && dry->is_bool() && dry->as_bool())) {
        ledger_.put(pod);
        assumed_.insert_or_assign(pod.meta.uid, Assumed{clock_.now() + kAssumed, pod});
    }
    return answer(verdict);
}

Status WebhookRun::judge(const model::Pod& pod) const {
    if (const auto other = assumed_.find(pod.meta.uid); other != assumed_.end()) {
        if (other->second.pod.node == pod.node) return {};
        return base::conflict(
            fmt::format("pod \"{}\" is just being bound to node \"{}\"", pod.meta.full_name(), other->second.pod.node));
    }
    return rules_.judge_bind(pod, ledger_);
}

// ---- certificate, server, configuration

void WebhookRun::keep_certificate() {
    const base::Instant now = clock_.now();
    const bool due = !current_ || now >= issued_ + options_.certificate_life * 2 / 3;
    if (due && !next_) {
        auto made = api::issue_serving("berth-webhook", {options_.address.host},
                                       std::chrono::duration_cast<std::chrono::seconds>(options_.certificate_life));
        if (!made) return base::log_error("No certificate for the webhook", {{"error", made.error()}});
        next_ = std::move(*made);
    }
    if (!next_) return;
    // A server that is in use is replaced only when the API server has been told of the new authority.
    if (current_ && !next_is_known_) return;
    if (!listen(*next_)) return;
    previous_ca_ = current_ ? current_->ca_pem : "";
    current_ = std::exchange(next_, std::nullopt);
    issued_ = now;
    next_is_known_ = false;
}

bool WebhookRun::listen(const api::ServingCertificate& certificate) {
    close();
    api::HttpOptions options;
    options.host = options_.address.host;
    options.port = options_.address.port;
    options.threads = 1;
    options.max_connections = 1000;
    options.max_body = kMostReview;
    options.max_idle_per_peer = options.max_connections;  // API servers do not say who they are
    options.counters = counters_;
    options.tls = {certificate.pair.certificate_pem, certificate.pair.key_pem, certificate.ca_pem};
    http_ = std::make_unique<api::HttpServer>(options, [this](api::Request request, api::Responder responder) {
        if (request.method != "POST") return responder.respond({405, "text/plain; charset=utf-8", {}, "only POST\n"});
        {
            const std::lock_guard lock(mutex_);
            asked_.push_back({std::move(request.body), std::move(responder), clock_.now()});
        }
        traffic_.wake();
    });
    const auto started = http_->start();
    if (!started) {
        base::log_error("The webhook cannot listen", {{"error", started.error()}});
        http_.reset();
    }
    return started.ok();
}

void WebhookRun::registered(const Result<link::Reply>& reply) {
    const bool written = reply && reply->ok();
    if (!written) {
        base::log_warning("The webhook's configuration was not written",
                          {{"answer", reply ? reply->body.substr(0, 300) : reply.error().message}});
    }
    confirmed_ = written ? sent_ : "";
    next_is_known_ = written && sent_with_next_;
}

void WebhookRun::keep_registered() {
    const base::Instant now = clock_.now();
    if (!current_ || traffic_.under_way() > 0 || now < registered_ + kBetweenWrites) return;
    run::WebhookTarget target;
    target.url = fmt::format("https://{}:{}/bindings", options_.address.host, options_.address.port);
    target.ca_pem = previous_ca_ + current_->ca_pem + (next_ ? next_->ca_pem : "");
    target.trusted = options_.trusted;
    std::string wanted = base::to_text(run::webhook_configuration(target, held_));
    if (wanted == confirmed_ && now < registered_ + kAssert) return;
    registered_ = now;
    sent_ = std::move(wanted);
    sent_with_next_ = next_.has_value();
    confirmed_.clear();
    traffic_.send({"PATCH",
                   fmt::format("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{}"
                               "?fieldManager=berth-controllers&force=true",
                               run::kWebhookConfiguration),
                   sent_, "application/apply-patch+yaml"},
                  Sent{});
}

}  // namespace berth::app
