#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "api/http.h"
#include "model/kinds/kinds.h"

namespace berth::api {

// /version, discovery (plain and aggregated) and OpenAPI (v3, and v2 in protobuf and JSON). OpenAPI's documents are
// large, so their texts are kept as long as the table of kinds is the same. Any thread.
class Documents {
public:
    // Nothing for another path.
    std::optional<Response> serve(const std::shared_ptr<const model::Kinds>& kinds, const Request& request);

private:
    struct Text {
        std::string body;
        std::string hash;
    };
    using TextPtr = std::shared_ptr<const Text>;
    std::optional<Response> openapi(const model::Kinds& kinds, const Request& request, std::string_view path);
    // The text called `name`, made by `make` when it is not there; null when `make` has none.
    template <class Make>
    TextPtr text(const std::string& name, Make&& make);

    std::mutex mutex_;
    std::shared_ptr<const model::Kinds> kinds_;
    std::map<std::string, TextPtr> texts_;
};

}  // namespace berth::api
