#pragma once

#include <optional>

#include "api/http.h"
#include "model/kinds/kinds.h"

namespace berth::api {

// /version, discovery (plain and aggregated) and OpenAPI (v3, and v2 in protobuf and JSON). Nothing for another path.
std::optional<Response> serve_document(const model::Kinds& kinds, const Request& request);

}  // namespace berth::api
