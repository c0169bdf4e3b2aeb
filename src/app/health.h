#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/http.h"
#include "base/metrics.h"

namespace berth::app {

struct HealthOptions {
    std::string host;
    uint16_t port = 0;
    std::string metrics_token_file = {};  // read at every scrape, so that a changed Secret needs no restart
};

// /healthz, /livez, /readyz and /metrics of an attached component, on a port of its own, in the clear. Whoever reaches
// it may ask for its health; the numbers are for this machine and for who shows the token.
class HealthServer {
public:
    // `unready` says why not, or nothing when ready. Both it and the metrics must outlive the server.
    HealthServer(base::Metrics& metrics, std::function<std::string()> unready)
        : metrics_(metrics), unready_(std::move(unready)) {}

    Status start(HealthOptions options);
    api::Response answer(const api::Request& request) const;

private:
    base::Metrics& metrics_;
    const std::function<std::string()> unready_;
    HealthOptions options_;
    std::unique_ptr<api::HttpServer> http_;
};

// Whether a request for the numbers comes from this machine (and from no page in its browser: those name a host), or
// has the token as its bearer.
bool may_read_metrics(const api::Request& request, const std::string& token_file);

// PREFIX_connections, PREFIX_streams, ... of a server.
void add_http_metrics(base::Metrics& metrics, const std::string& prefix,
                      const std::shared_ptr<const api::HttpCounters>& counters);

// process_* as Prometheus' own clients name them, read from /proc.
void add_process_metrics(base::Metrics& metrics);

}  // namespace berth::app
