#pragma once

#include <string>
#include <vector>

namespace berth::bench {

// `berth bench`.
int bench(std::vector<std::string> words);

}  // namespace berth::bench
