#pragma once

#include "base/json.h"
#include "base/result.h"
#include "model/kinds/types.h"

// The three patch forms of the API on JSON documents. When a patch is refused the document is left in an unspecified
// state: patch a copy. A malformed patch is BadRequest, one that does not fit the document is Invalid.
namespace berth::model {

inline constexpr size_t kMaxPatchOperations = 10'000;
inline constexpr size_t kMaxPatchCopyBytes = 3 * 1024 * 1024;
// Values that the operations of one JSON patch may pass by: items of lists that make way or close up, and what lies in
// a value that moves to a deeper place. E.g. 10,000 operations at the front of a list of 400 items.
inline constexpr size_t kMaxPatchPassed = 4 * 1024 * 1024;

// RFC 6902. The cost is linear in the document and the patch, but for what kMaxPatchPassed bounds. The document gets no
// deeper than base::kMaxJsonDepth: what is stored can be read again.
Status apply_json_patch(Json& document, const Json& patch);

// RFC 7386.
Status apply_merge_patch(Json& document, const Json& patch);

// Kubernetes' strategic merge patch: lists merge by the merge keys of the type; directives $patch, $retainKeys,
// $setElementOrder and $deleteFromPrimitiveList.
Status apply_strategic_patch(Json& document, const Json& patch, const Type& type);

}  // namespace berth::model
