#pragma once

#include <string>
#include <vector>

#include "cli/world.h"

namespace berth::cli {

// berth whatif -f FILE... [-o table|json] [--scores] [--now TIME] [--no-preemption]
int whatif(std::vector<std::string> words);

// The document of product.md: every key is always present.
Json whatif_document(const std::vector<Placement>& outcomes, const std::vector<Holding>& holdings);
std::string whatif_table(const std::vector<Placement>& outcomes, const std::vector<Holding>& holdings, bool scores);

}  // namespace berth::cli
