#pragma once

#include <string_view>

#include "store/store.h"

namespace berth::api {

// Whether a pod that is bound to the node mentions the object: a Secret, ConfigMap, claim, or the volume behind a
// claim. Looks through the pods of one namespace; of those that do not have the node's name only the text is searched.
bool node_mounts(const store::Store& objects, std::string_view node, const store::Key& object);

}  // namespace berth::api
