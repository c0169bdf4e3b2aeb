#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "link/machine_runtime.h"

// IRI over gRPC (proto/): unix sockets, and TCP, which needs mutual TLS off loopback.
namespace berth::link {

struct IriTls {
    std::string certificate;  // files, PEM; empty: none
    std::string key;
    std::string ca;
    std::vector<std::string> clients;  // names of certificates that may ask; none: any that `ca` has signed
    std::string runtime;               // whose name the certificate of what is asked has; empty: the address'
    bool given() const { return !certificate.empty() || !key.empty() || !ca.empty(); }
};

struct IriAddress {
    std::string target;  // as gRPC names it
    bool unix_socket = false;
    bool loopback = false;
};
// "unix:///path" or HOST:PORT.
Result<IriAddress> read_iri_address(const std::string& text);

// The runtime must outlive it. What comes in is bounded: 4 MiB a message, and by iri_gate.h.
class IriServer {
public:
    virtual ~IriServer() = default;
    virtual int port() const = 0;  // of TCP
    static Result<std::unique_ptr<IriServer>> start(const std::string& address, const IriTls& tls,
                                                    MachineRuntime& runtime, base::Metrics* metrics = nullptr);
};

// Calls end after `deadline` at the latest.
Result<std::shared_ptr<MachineRuntime>> connect_iri(const std::string& address, const IriTls& tls,
                                                    base::Duration deadline = std::chrono::seconds(5));

}  // namespace berth::link
