#pragma once

#include <memory>

#include "base/clock.h"
#include "link/kubeconfig.h"
#include "link/wire.h"

namespace berth::link {

// HTTP/2 where a server offers it in TLS, else HTTP/1.1; one I/O thread, connections kept and reused. Boost.Asio, Beast
// and nghttp2 stay behind this header. An error when the kubeconfig or its certificates cannot be used; the server is
// not asked yet.
Result<std::unique_ptr<Wire>> http_wire(const AccessOptions& options, const base::Clock& clock = base::system_clock());
// The same to any HTTP server, with what is given.
Result<std::unique_ptr<Wire>> http_wire(Access access, const base::Clock& clock = base::system_clock());

}  // namespace berth::link
