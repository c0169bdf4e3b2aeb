#pragma once

#include <simdjson.h>

#include <string_view>

#include "base/result.h"

// Read-only JSON at simdjson's speed, for decoding objects into typed values. A View points into its JsonParser's
// buffer and dies with the parser's next parse().
namespace berth::base {

using JsonView = simdjson::dom::element;

class JsonParser {
public:
    // At most kMaxJsonDepth levels, valid UTF-8. Duplicate keys: the first counts (the door refuses them before).
    Result<JsonView> parse(std::string_view text);

private:
    Result<JsonView> parse_as_is(std::string_view text);

    simdjson::dom::parser parser_;
};

}  // namespace berth::base

namespace berth {
using base::JsonView;
}  // namespace berth
