#pragma once

#include <functional>
#include <memory>

#include "link/frame_check.h"
#include "link/iri_tls.h"

namespace berth::link {

struct GateLimits {
    size_t known = 64;     // connections that shook hands and speak HTTP/2
    size_t unknown = 256;  // that have not, yet
    base::Duration handshake = std::chrono::seconds(10);
    base::Duration unread = std::chrono::seconds(30);  // how long a client may take nothing
    size_t requests = size_t{128} << 20;               // bytes of requests of all that are not answered
    FrameLimits frames;
};

// The door before gRPC: it listens, shakes hands, looks at what comes by frame_check.h, and hands what is left to
// somebody in this process over a pair of sockets. gRPC itself listens nowhere: it would stop for ever when the
// process has no file for a connection (CVE-2023-4785).
class IriGate {
public:
    // One end of a connection, which is his: it does not block.
    using Take = std::function<void(int fd)>;

    virtual ~IriGate() = default;
    virtual int port() const = 0;  // of TCP
    static Result<std::unique_ptr<IriGate>> start(const IriAddress& where, const IriKeys& keys, Take take,
                                                  base::Metrics* metrics = nullptr, const GateLimits& limits = {},
                                                  const base::Clock& clock = base::system_clock());
};

}  // namespace berth::link
