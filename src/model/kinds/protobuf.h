#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "model/kinds/kinds.h"

namespace berth::model {

// The JSON form of a request body in Kubernetes' protobuf: "k8s\0" and a runtime.Unknown with the object inside. Any
// kind of the table and the bodies of subresources (Eviction, Binding, Scale, TokenRequest, DeleteOptions). Unknown
// numbers are skipped, as protobuf asks. The document still wants check_fields, which drops zero values.
Result<Json> decode_protobuf(std::string_view body, const Kinds& kinds = model::kinds());

inline constexpr std::string_view kProtobufMagic{"k8s\0", 4};

}  // namespace berth::model
