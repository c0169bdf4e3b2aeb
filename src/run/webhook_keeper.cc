#include "run/webhook_keeper.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "base/log.h"

namespace berth::run {
namespace {

constexpr base::Duration kBetweenWrites = std::chrono::milliseconds(500);
constexpr base::Duration kAssert = std::chrono::seconds(60);  // somebody may have changed or deleted it

}  // namespace

std::string review_answer(std::string_view uid, const std::string& why, int code, std::string_view reason,
                          const std::string& patch) {
    JsonObject response{{"uid", uid}, {"allowed", why.empty()}};
    if (!why.empty()) response["status"] = JsonObject{{"code", code}, {"reason", reason}, {"message", why}};
    if (!patch.empty()) {
        response["patchType"] = "JSONPatch";
        response["patch"] = base::to_base64(patch);
    }
    return base::to_text(Json(JsonObject{
        {"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}}));
}

std::vector<link::Request> WebhookKeeper::turn(base::Instant now, bool busy, WebhookJudge::Doors& doors,
                                               const std::function<void()>& drop, const Registrations& wanted) {
    keep_certificate(now, doors, drop);
    return keep_registered(now, busy, wanted);
}

void WebhookKeeper::keep_certificate(base::Instant now, WebhookJudge::Doors& doors, const std::function<void()>& drop) {
    const bool due = !current_ || now >= issued_ + place_.life * 2 / 3;
    if (due && !next_keys_) {
        auto made = doors.issue(place_.life);
        if (!made) return base::log_error("No certificate for the webhook", {{"error", made.error()}});
        next_keys_ = std::move(*made);
    }
    if (!next_keys_) return;
    // A server that is in use is replaced only when the API server has been told of the new authority.
    if (current_ && !next_is_known_) return;
    if (!listen(*next_keys_, doors, drop)) return;
    previous_ca_ = current_ ? current_->ca_pem : "";
    current_ = std::exchange(next_keys_, std::nullopt);
    issued_ = now;
    next_is_known_ = false;
}

bool WebhookKeeper::listen(const ServingKeys& keys, WebhookJudge::Doors& doors, const std::function<void()>& drop) {
    drop();
    const auto started = doors.listen(keys);
    if (!started) base::log_error("The webhook cannot listen", {{"error", started.error()}});
    return started.ok();
}

void WebhookKeeper::registered(const Result<link::Reply>& reply) {
    const bool written = reply && reply->ok();
    if (!written) {
        base::log_warning("The webhook's configuration was not written",
                          {{"answer", reply ? reply->body.substr(0, 300) : reply.error().message}});
    }
    refused_ = refused_ || !written;
    if (--outstanding_ > 0) return;
    confirmed_ = refused_ ? "" : sent_;
    next_is_known_ = !refused_ && sent_with_next_;
}

std::vector<link::Request> WebhookKeeper::keep_registered(base::Instant now, bool busy, const Registrations& wanted) {
    const auto passed = [&](base::Duration span) { return !registered_ || now >= *registered_ + span; };
    if (!current_ || busy || outstanding_ > 0 || !passed(kBetweenWrites)) return {};
    const std::string url = fmt::format("https://{}:{}{}", place_.host, place_.port, place_.path);
    std::vector<link::Request> out;
    std::string all;
    for (const auto& one : wanted(url, previous_ca_ + current_->ca_pem + (next_keys_ ? next_keys_->ca_pem : ""))) {
        out.push_back({"PATCH", fmt::format("{}?fieldManager={}&force=true", one.path, manager_),
                       base::to_text(one.document), "application/apply-patch+yaml"});
        all += out.back().body;
    }
    if (all == confirmed_ && !passed(kAssert)) return {};
    registered_ = now;
    sent_ = std::move(all);
    sent_with_next_ = next_keys_.has_value();
    confirmed_.clear();
    outstanding_ = out.size();
    refused_ = false;
    return out;
}

}  // namespace berth::run
