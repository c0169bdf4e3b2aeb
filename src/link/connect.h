#pragma once

#include <memory>

#include "link/kubeconfig.h"
#include "link/remote.h"
#include "link/server.h"

namespace berth::link {

// A link to the server that a kubeconfig names. Reads the kubeconfig; the server itself is not asked yet.
Result<std::unique_ptr<Server>> connect(const AccessOptions& access, RemoteOptions options = {});

// Sends and waits for the answer. For commands of a person: the threads of components never wait.
Result<Reply> ask(Server& server, Request request);

}  // namespace berth::link
