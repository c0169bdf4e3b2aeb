#include "app/webhook.h"

#include <openssl/crypto.h>

#include <utility>

#include "api/pki.h"

namespace berth::app {
namespace {

constexpr size_t kMostReview = 4u << 20;  // of a resize: the pod as it was and as it is to be, 1.5 MiB each

Result<run::ServingKeys> issue(const std::string& host, base::Duration life) {
    auto made = TRY(api::issue_serving("berth-webhook", {host}, std::chrono::duration_cast<std::chrono::seconds>(life),
                                       base::system_clock().wall()));
    return run::ServingKeys{made.pair.certificate_pem, made.pair.key_pem, made.ca_pem};
}

std::string content_type(int code) {
    return code == 200 ? "application/json" : "text/plain; charset=utf-8";
}

}  // namespace

Webhook::Webhook(std::unique_ptr<link::ApiClient> server, Place place, const Make& make, const base::Clock& clock)
    : place_(std::move(place)) {
    place_.path += "/" + api::random_token();
    thread_ = std::make_unique<DriverThread>("webhook", clock, [&](link::Wake wake) {
        auto made = make({std::move(server), std::move(wake),
                          [host = place_.host](base::Duration life) { return issue(host, life); },
                          [this](const run::ServingKeys& keys) { return listen(keys); },
                          [this] {
                              if (http_) http_->stop();
                          }},
                         place_.path);
        driver_ = made.get();
        return made;
    });
}

Status Webhook::listen(const run::ServingKeys& keys) {
    api::HttpOptions options;
    options.host = place_.host;
    options.port = place_.port;
    options.threads = 1;
    options.max_connections = 1000;
    options.max_body = kMostReview;
    options.max_idle_per_peer = options.max_connections;  // API servers do not say who they are
    options.counters = counters_;
    options.tls = {keys.certificate_pem, keys.key_pem, keys.ca_pem};
    http_ = std::make_unique<api::HttpServer>(options, [this](api::Request request, api::Responder responder) {
        if (request.path.size() != place_.path.size() ||
            CRYPTO_memcmp(request.path.data(), place_.path.data(), place_.path.size()) != 0) {
            return responder.respond({404, content_type(404), {}, "404 page not found\n"});
        }
        if (request.method != "POST") return responder.respond({405, content_type(405), {}, "only POST\n"});
        driver_->ask(request.body,
                     [to = std::make_shared<api::Responder>(std::move(responder))](int code, std::string body) {
                         to->respond({code, content_type(code), {}, std::move(body)});
                     });
    });
    if (const auto started = http_->start(); !started) {
        http_.reset();
        return started.error();
    }
    return {};
}

}  // namespace berth::app
