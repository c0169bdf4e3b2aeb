#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "link/session.h"
#include "run/driver.h"

namespace berth::run {

// What the API server may ask us with, and whom it then trusts.
struct ServingKeys {
    std::string certificate_pem;
    std::string key_pem;
    std::string ca_pem;
};

// A judge that an API server asks with AdmissionReviews.
class WebhookJudge : public Driver {
public:
    // `answer` is called with a code and a body, once or, when we end, never.
    using Answer = std::function<void(int code, std::string body)>;
    struct Doors {
        std::unique_ptr<link::ApiClient> server;
        link::Wake wake;
        std::function<Result<ServingKeys>(base::Duration life)> issue;
        // Answers with these keys from now on; an Error when it cannot, then nobody is answered.
        std::function<Status(const ServingKeys& keys)> listen;
        std::function<void()> close;
    };
    // Any thread: an AdmissionReview came.
    virtual void ask(const std::string& body, Answer answer) = 0;
};

// A configuration of webhooks as it shall be at the API server.
struct WebhookRegistration {
    std::string path;  // of the object
    Json document;
};

// What a webhook needs besides its judgement: a certificate that is renewed after two thirds of its life, a port that
// serves with it, and configurations at the API server that point there. These stay after our end.
class WebhookKeeper {
public:
    struct Place {
        std::string host;  // where the API server reaches us
        uint16_t port = 0;
        std::string path;
        base::Duration life;  // of a certificate
    };
    // What shall be registered for a url and the authorities (PEM) that answer there.
    using Registrations =
        std::function<std::vector<WebhookRegistration>(const std::string& url, const std::string& ca)>;

    WebhookKeeper(Place place, std::string manager) : place_(std::move(place)), manager_(std::move(manager)) {}

    // Once a turn. What shall be sent, if anything; nothing while earlier answers are outstanding (`busy`).
    std::vector<link::Request> turn(base::Instant now, bool busy, WebhookJudge::Doors& doors,
                                    const std::function<void()>& drop, const Registrations& wanted);
    // The answer to each of them.
    void registered(const Result<link::Reply>& reply);

private:
    void keep_certificate(base::Instant now, WebhookJudge::Doors& doors, const std::function<void()>& drop);
    bool listen(const ServingKeys& keys, WebhookJudge::Doors& doors, const std::function<void()>& drop);
    std::vector<link::Request> keep_registered(base::Instant now, bool busy, const Registrations& wanted);

    const Place place_;
    const std::string manager_;
    std::optional<ServingKeys> current_, next_keys_;
    base::Instant issued_{};
    std::string previous_ca_;
    std::optional<base::Instant> registered_;
    std::string sent_, confirmed_;
    size_t outstanding_ = 0;
    bool refused_ = false;
    bool sent_with_next_ = false, next_is_known_ = false;
};

// The answer to an AdmissionReview. `why` is empty where it is allowed; `patch` are the steps of a JSON patch, or "".
std::string review_answer(std::string_view uid, const std::string& why, int code = 409,
                          std::string_view reason = "Conflict", const std::string& patch = "");

}  // namespace berth::run
