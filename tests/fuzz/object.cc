#include <cstddef>
#include <cstdint>

#include "base/json.h"
#include "model/kinds/defaults.h"
#include "model/kinds/fields.h"
#include "model/kinds/table.h"
#include "model/kinds/validate.h"

using namespace berth;

// An object of any kind: the first byte says which. Whatever passes the type check can be defaulted, judged and
// printed, and passes again without a complaint and without a change.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2) return 0;
    const auto& all = model::kinds().all();
    const model::Kind& kind = *all[data[0] % all.size()];
    auto object = base::parse_json({reinterpret_cast<const char*>(data + 1), size - 1});
    if (!object.ok() || !model::check_fields(*object, *kind.type).ok()) return 0;
    model::apply_defaults(*object, kind);
    (void)model::validate(*object, kind);
    (void)model::validate_update(*object, *object, kind);
    (void)model::table_row(kind, *object, {});
    Json again = *object;
    const auto complaints = model::check_fields(again, *kind.type);
    CHECK(complaints.ok() && complaints->empty());
    CHECK(again == *object);
    return 0;
}
