#include "model/kinds/patch.h"

#include <cstddef>
#include <cstdint>

#include "base/json.h"
#include "model/kinds/kinds.h"

using namespace berth;

// A document and a patch, separated by a line break, in all three forms. A merge patch applied twice is applied once.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const size_t line = text.find('\n');
    if (line == std::string_view::npos) return 0;
    const auto document = base::parse_json(text.substr(0, line));
    const auto patch = base::parse_json(text.substr(line + 1));
    if (!document.ok() || !patch.ok()) return 0;
    Json patched = *document;
    (void)model::apply_json_patch(patched, *patch);
    patched = *document;
    (void)model::apply_strategic_patch(patched, *patch, *model::kinds().of("v1", "Pod")->type);
    patched = *document;
    if (!model::apply_merge_patch(patched, *patch).ok()) return 0;
    Json twice = patched;
    CHECK(model::apply_merge_patch(twice, *patch).ok());
    CHECK(twice == patched);
    return 0;
}
