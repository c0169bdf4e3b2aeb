#pragma once

#include <memory>

#include "api/identity.h"
#include "app/server.h"
#include "link/api_client.h"

namespace berth::app {

// The link of a component inside this process: it reads the store, and writes as `who` through the front door's own
// handlers. The server must outlive it.
std::unique_ptr<link::ApiClient> local_link(Server& server, api::Identity who);

}  // namespace berth::app
