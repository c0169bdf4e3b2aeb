#include "base/json_view.h"

#include <fmt/format.h>

#include "base/json.h"

namespace berth::base {

Result<JsonView> JsonParser::parse(std::string_view text) {
    auto parsed = parse_as_is(text);
    if (parsed) return parsed;
    // simdjson refuses integers beyond 64 bits, which others may send; rewritten, they are doubles.
    const auto rewritten = parse_json(text);
    return rewritten ? parse_as_is(to_text(*rewritten)) : std::move(parsed);
}

Result<JsonView> JsonParser::parse_as_is(std::string_view text) {
    if (text.empty()) return bad_request("invalid JSON: there is nothing");
    if (parser_.max_depth() != kMaxJsonDepth || parser_.capacity() < text.size()) {
        if (parser_.allocate(std::max<size_t>(text.size(), 4096), kMaxJsonDepth))
            return internal("out of memory for JSON");
    }
    JsonView root;
    const auto error = parser_.parse(text.data(), text.size()).get(root);
    if (error) return bad_request(fmt::format("invalid JSON: {}", simdjson::error_message(error)));
    return root;
}

}  // namespace berth::base
