#include "model/quantity.h"

#include <cstddef>
#include <cstdint>

using berth::model::Quantity;

namespace {

void expect_reads_back(const Quantity& quantity) {
    const auto again = Quantity::parse(quantity.text());
    CHECK(again.ok());
    CHECK(*again == quantity);
    // A binary amount without a factor of 1024 prints as plain digits, which read as decimal.
    if (again->format() == quantity.format()) CHECK(again->text() == quantity.text());
}

}  // namespace

// Two quantities, split at the first space.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const size_t space = text.find(' ');
    const auto a = Quantity::parse(text.substr(0, space));
    if (!a) return 0;
    expect_reads_back(*a);
    CHECK((*a - *a).is_zero());
    CHECK((a->value() < 0) == a->is_negative());
    CHECK((a->milli() < 0) == a->is_negative());
    if (space == std::string_view::npos) return 0;
    const auto b = Quantity::parse(text.substr(space + 1));
    if (!b) return 0;
    expect_reads_back(*a + *b);
    expect_reads_back(*a - *b);
    CHECK(*a + *b == *b + *a);
    CHECK((*a < *b) == (*b > *a));
    CHECK((*a == *b) == ((*a <=> *b) == 0));
    return 0;
}
