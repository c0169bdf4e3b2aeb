#include "model/kinds/protobuf.h"

#include <cstddef>
#include <cstdint>

#include "base/json.h"
#include "model/kinds/fields.h"

using namespace berth;

// A request body: what decodes is JSON that prints, and the type check may only refuse values, never find unknown
// members.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    auto object = model::decode_protobuf(bytes);
    if (!object.ok()) object = model::decode_protobuf(std::string(model::kProtobufMagic) + std::string(bytes));
    if (!object.ok()) return 0;
    CHECK(base::parse_json(base::to_text(*object)).ok());
    const auto* type =
        model::kinds().body_type(base::find_string(*object, {"apiVersion"}), base::find_string(*object, {"kind"}));
    CHECK(type != nullptr);
    const auto complaints = model::check_fields(*object, *type);
    CHECK(!complaints.ok() || complaints->empty());
    return 0;
}
