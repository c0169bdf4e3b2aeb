#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"
#include "model/kinds/kinds.h"

// What a server tells about the kinds it serves: the documents of /api and /apis.
namespace berth::model {

// GET /api. address is what clients may call the server by, "127.0.0.1:6443".
Json core_versions(std::string_view address);

// GET /apis and /apis/GROUP; nullopt: no such group.
Json group_list(const Kinds& kinds);
std::optional<Json> group_document(const Kinds& kinds, std::string_view group);

// GET /api/v1 and /apis/GROUP/VERSION; nullopt: nothing is served there.
std::optional<Json> resource_list(const Kinds& kinds, std::string_view group, std::string_view version);

// GET /api (core) or /apis in the aggregated form; form is "v2" or "v2beta1" of apidiscovery.k8s.io.
enum class Groups : bool { Core, Named };
Json aggregated_discovery(const Kinds& kinds, Groups groups, std::string_view form);

}  // namespace berth::model
