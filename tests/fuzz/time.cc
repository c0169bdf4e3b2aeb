#include <cstddef>
#include <cstdint>

#include "base/base64.h"
#include "model/names.h"
#include "model/times.h"

using namespace berth::model;

// Times, durations, names and base64.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto time = parse_time(text)) {
        const auto again = parse_time(time_text(*time));
        CHECK(again.ok());
        CHECK(time_text(*again) == time_text(*time));
        CHECK(micro_time_text(*time).size() == 27);
    }
    if (const auto duration = parse_duration(text)) {
        const auto again = parse_duration(duration_text(*duration));
        CHECK(again.ok());
        CHECK(*again == *duration);
    }
    CHECK(berth::base::from_base64(berth::base::to_base64(text)) == text);
    // Every label is a name with dots, and every such name a qualified name, up to its length.
    if (!dns1123_label_fault(text)) CHECK(!dns1123_subdomain_fault(text));
    if (!dns1123_subdomain_fault(text) && size <= 63) CHECK(!qualified_name_fault(text));
    if (!qualified_name_fault(text)) CHECK(!annotation_key_fault(text));
    return 0;
}
