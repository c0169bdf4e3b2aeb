#include <cstddef>
#include <cstdint>

#include "base/json.h"
#include "base/json_view.h"
#include "base/yaml.h"

using namespace berth::base;

namespace {

void expect_reads_back(const Json& value) {
    const auto again = parse_json(to_text(value));
    CHECK(again.ok());
    CHECK(to_text(*again) == to_text(value));
}

}  // namespace

// JSON and YAML: whatever is accepted prints as JSON that reads as the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto value = parse_json(text)) {
        expect_reads_back(*value);
        JsonParser parser;
        CHECK(parser.parse(text).ok());
        CHECK(parser.parse(to_text(*value)).ok());
    }
    if (const auto documents = parse_yaml(text, {1 << 16, 1000})) {
        for (const auto& document : *documents) expect_reads_back(document);
    }
    return 0;
}
