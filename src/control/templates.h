#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

// Pod templates, compared: whoever writes them again, kubectl or a patch, orders their members otherwise, or spells out
// what is not there.
namespace berth::control {

// Two templates are the same if these are: members by name, without what is null or empty and without the labels that
// tell one controller's pods apart.
std::string template_text(const Json& pod_template);
// Ten letters that spell no words: names something after a text.
std::string hash_text(std::string_view text);

}  // namespace berth::control
