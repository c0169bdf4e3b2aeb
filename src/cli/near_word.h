#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

// The one of the words that was probably meant: a few letters more, fewer, other or exchanged; or the only one that
// begins so. Empty when none is near.
std::string near_word(std::string_view given, const std::vector<std::string>& words);

}  // namespace berth::cli
