#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"

// What a YAML scalar means. Used by yaml.cc alone.
namespace berth::base {

// None: to be guessed from the text. Other: a tag of somebody's own, which makes a string.
enum class YamlTag : uint8_t { None, String, Binary, Int, Float, Bool, Null, Timestamp, Other };

YamlTag yaml_tag(const char* tag);

Result<Json> yaml_scalar(YamlTag tag, std::string_view text);

// A scalar as the key of an object: 1 becomes "1", yes becomes "true"; null is refused.
Result<std::string> yaml_key(YamlTag tag, std::string_view text);

}  // namespace berth::base
