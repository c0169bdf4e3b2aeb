#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/http.h"
#include "base/metrics.h"

namespace berth::app {

// /healthz, /livez, /readyz and /metrics of an attached component, on a port of its own, in the clear and for everyone
// who reaches it: nothing it says is secret.
class HealthServer {
public:
    // `unready` says why not, or nothing when ready. Both it and the metrics must outlive the server.
    HealthServer(const base::Metrics& metrics, std::function<std::string()> unready)
        : metrics_(metrics), unready_(std::move(unready)) {}

    Status start(const std::string& host, uint16_t port);

private:
    api::Response answer(const api::Request& request) const;

    const base::Metrics& metrics_;
    const std::function<std::string()> unready_;
    std::unique_ptr<api::HttpServer> http_;
};

// process_* as Prometheus' own clients name them, read from /proc.
void add_process_metrics(base::Metrics& metrics);

}  // namespace berth::app
