#pragma once

#include "link/api_client.h"
#include "store/store.h"

namespace berth::link {

// The embedded server: reads come from the store's own memory, writes enter through `perform` (api's handlers below
// HTTP, with an identity), so that defaults, admission and the guard are the same for everyone.
class LocalServer : public ApiClient {
public:
    using Perform = std::function<void(Request, ReplyTo)>;
    LocalServer(store::Store& store, Perform perform) : store_(store), perform_(std::move(perform)) {}

    void send(Request request, ReplyTo reply) override { perform_(std::move(request), std::move(reply)); }
    std::unique_ptr<Feed> follow(const Resource& resource, std::function<void()> notify) override;

private:
    store::Store& store_;
    Perform perform_;
};

}  // namespace berth::link
