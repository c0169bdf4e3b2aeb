#pragma once

#include <memory>
#include <string>

#include "api/http.h"
#include "app/driver_thread.h"
#include "base/metrics.h"
#include "base/result.h"
#include "cli/share_flags.h"
#include "run/arbitrator_driver.h"

namespace berth::app {

// The flags of the arbitrator that a whole control plane has as well.
struct ArbitratorFlags {
    cli::ShareFlags share;
    base::Duration cycle = std::chrono::seconds(1);
    base::Duration grace = std::chrono::seconds(30);
};
void add_arbitrator_flags(cli::CommandLine& line, ArbitratorFlags& flags);
Result<run::ArbitratorOptions> read_arbitrator_flags(const ArbitratorFlags& flags);

// The port where schedulers ask, from the start on: as long as nobody leads here they hear that.
class ExtenderPort {
public:
    // HOST:PORT, and a file with a word that paths begin with: who does not know it gets no answer. Empty: no file.
    static Result<std::unique_ptr<ExtenderPort>> open(const std::string& address, const std::string& secret_file,
                                                      base::Metrics& metrics);

    const std::shared_ptr<run::ShareDesk>& desk() const { return desk_; }
    uint16_t port() const { return port_; }

private:
    ExtenderPort() = default;
    api::Response answer(const api::Request& request) const;

    std::string secret_;  // "", or with a slash before it
    std::shared_ptr<run::ShareDesk> desk_ = std::make_shared<run::ShareDesk>();
    std::unique_ptr<api::HttpServer> http_;
    base::Histogram* seconds_ = nullptr;
    uint16_t port_ = 0;
};

}  // namespace berth::app
