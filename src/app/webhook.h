#pragma once

#include <memory>

#include "api/http.h"
#include "app/driver_thread.h"
#include "run/webhook_driver.h"

namespace berth::app {

// The webhook that judges bindings on a stock API server, with its port and its thread. What it lets through it counts,
// so nobody may ask but the API server, which does not say who it is: the path is a secret that only who reads the
// webhook's configuration knows.
class Webhook final : public Component {
public:
    Webhook(std::unique_ptr<link::ApiClient> server, run::WebhookOptions options, const base::Clock& clock);

    bool synced() const override { return thread_->synced(); }
    std::shared_ptr<const api::HttpCounters> counters() const { return counters_; }

private:
    std::unique_ptr<run::Driver> driver(std::unique_ptr<link::ApiClient> server, link::Wake wake);
    Status listen(const run::ServingKeys& keys);

    const run::WebhookOptions options_;
    const std::shared_ptr<api::HttpCounters> counters_ = std::make_shared<api::HttpCounters>();
    run::WebhookDriver* driver_ = nullptr;
    std::unique_ptr<api::HttpServer> http_;  // outlives the questions that the driver has
    std::unique_ptr<DriverThread> thread_;
};

}  // namespace berth::app
