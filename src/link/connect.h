#pragma once

#include <memory>

#include "link/api_client.h"
#include "link/kubeconfig.h"
#include "link/remote.h"

namespace berth::link {

// A link to the server that a kubeconfig names. Reads the kubeconfig; the server itself is not asked yet.
Result<std::unique_ptr<ApiClient>> connect(const AccessOptions& access, RemoteOptions options = {});

// Sends and waits for the answer. For commands of a person: the threads of components never wait.
Result<Reply> ask(ApiClient& server, Request request);

}  // namespace berth::link
