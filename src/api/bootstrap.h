#pragma once

#include "api/api_context.h"

namespace berth::api {

struct BootstrapFacts {
    uint16_t port = 0;           // where the server listens
    std::string client_ca = {};  // PEM; for components that look up how clients are authenticated
};

// The objects that every cluster has, made where they are missing: namespaces, priority classes, the Service of the
// API server. Waits until they are durable.
Status make_first_objects(ApiContext& context, const BootstrapFacts& facts);

// Events live for an hour after they were last seen, and only so many of them: the ones written longest ago go first.
inline constexpr size_t kMostEvents = 20'000;
void expire_events(ApiContext& context);

}  // namespace berth::api
