#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/http.h"
#include "app/driver_thread.h"
#include "run/webhook_keeper.h"

namespace berth::app {

// A webhook that an API server asks, with its port and its thread. What it is told it believes, and what it lets
// through it may count, so nobody may ask but the API server, which does not say who it is: the path is a secret that
// only who reads the webhook's configuration knows.
class Webhook final : public Component {
public:
    struct Place {
        std::string host;
        uint16_t port = 0;
        std::string path;  // the beginning of it
    };
    // With a path that ends in a secret.
    using Make = std::function<std::unique_ptr<run::WebhookJudge>(run::WebhookJudge::Doors doors, std::string path)>;
    Webhook(std::unique_ptr<link::ApiClient> server, Place place, const Make& make, const base::Clock& clock);

    bool synced() const override { return thread_->synced(); }
    std::shared_ptr<const api::HttpCounters> counters() const { return counters_; }

private:
    Status listen(const run::ServingKeys& keys);

    Place place_;
    const std::shared_ptr<api::HttpCounters> counters_ = std::make_shared<api::HttpCounters>();
    run::WebhookJudge* driver_ = nullptr;
    std::unique_ptr<api::HttpServer> http_;  // outlives the questions that the driver has
    std::unique_ptr<DriverThread> thread_;
};

}  // namespace berth::app
