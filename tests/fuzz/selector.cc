#include "model/selector.h"

#include <cstddef>
#include <cstdint>

#include "model/field_selector.h"

using berth::model::FieldSelector;
using berth::model::Labels;
using berth::model::Selector;

// A label selector and a field selector: what is printed must read as the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const Labels labels{{"a", "b"}, {"x/y", "5"}};
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto selector = Selector::parse(text, berth::model::kDoorLimits)) {
        const auto again = Selector::parse(selector->text());
        CHECK(again.ok());
        CHECK(*again == *selector);
        CHECK(again->matches(labels) == selector->matches(labels));
    }
    if (const auto selector = FieldSelector::parse(text, berth::model::kDoorLimits)) {
        const auto again = FieldSelector::parse(selector->text());
        CHECK(again.ok());
        // Terms are sorted as they were written, with = or ==, and printed with =; from then on they stay.
        CHECK(again->terms().size() == selector->terms().size());
        CHECK(FieldSelector::parse(again->text())->text() == again->text());
    }
    return 0;
}
