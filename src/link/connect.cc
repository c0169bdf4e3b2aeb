#include "link/connect.h"

#include <future>

#include "base/random.h"
#include "link/http_wire.h"

namespace berth::link {

Result<std::unique_ptr<ApiClient>> connect(const AccessOptions& access, RemoteOptions options) {
    if (options.seed == 0) options.seed = base::seed_from_system();
    return std::unique_ptr<ApiClient>(std::make_unique<RemoteServer>(TRY(http_wire(access)), options));
}

Result<Reply> ask(ApiClient& server, Request request) {
    std::promise<Result<Reply>> promise;
    auto answer = promise.get_future();
    server.send(std::move(request), [&](Result<Reply> reply) { promise.set_value(std::move(reply)); });
    return answer.get();
}

}  // namespace berth::link
