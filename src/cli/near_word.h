#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

// The one of the known words that whoever wrote `word` most likely meant; empty: none is near.
std::string near_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace berth::cli
