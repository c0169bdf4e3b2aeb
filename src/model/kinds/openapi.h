#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/kinds/kinds.h"

// The table of kinds as OpenAPI documents. Each call builds the document anew: keep the text.
namespace berth::model {

// GET /openapi/v3: where the documents of the group-versions are; each address carries a hash of its document.
Json openapi_v3_index(const Kinds& kinds);

// GET /openapi/v3/api/v1, /openapi/v3/apis/GROUP/VERSION; nullopt: nothing is served there.
std::optional<Json> openapi_v3(const Kinds& kinds, std::string_view group, std::string_view version);

// GET /openapi/v2: all group-versions in one document.
Json openapi_v2(const Kinds& kinds);

// The same in the protobuf form of gnostic's OpenAPIv2, which kubectl before 1.27 insists on.
std::string openapi_v2_protobuf(const Json& document);

// A short name for the content of a document, for ETag and ?hash=.
std::string content_hash(std::string_view text);

}  // namespace berth::model
