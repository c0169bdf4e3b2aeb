#pragma once

#include "api/api_context.h"
#include "api/call.h"
#include "base/json.h"
#include "model/kinds/validate_rules.h"

// metadata of objects: what the server sets, and what it checks.
namespace berth::api {

std::string_view meta_text(const Json& object, std::string_view field);
JsonObject& meta_of(Json& object);
bool is_deleting(const Json& object);

// The body's name and namespace must be those of the URL, or are taken from it.
Status match_url(const Call& call, Json& object);
// Name (also from generateName), uid, creation time, generation; what clients may not set is dropped.
Status stamp_new(ApiContext& context, const Call& call, Json& object);
// Labels, annotations, finalizers and owners.
void check_metadata(const Json& object, model::Causes& causes);
void check_name(const model::Kind& kind, const Json& object, model::Causes& causes);

// The namespace exists and takes new objects. In the head, so that a create right after its namespace works.
Status check_namespace(ApiContext& context, const Call& call, std::string_view name);

}  // namespace berth::api
