#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/capacity.h"
#include "cli/leaving.h"
#include "run/world.h"

namespace berth::cli {

int whatif(std::vector<std::string> words);

// All that whatif answers.
struct WhatifReport {
    std::vector<run::Placement> answers;
    std::vector<run::Holding> holdings;
    std::optional<Drain> drain = {};
    std::optional<Fit> fit = {};
    int64_t fit_wanted = 1;
    std::optional<Need> need = {};
};
// Whether all that was asked for has a place. Gated pods wait on purpose.
bool all_fits(const WhatifReport& report);

// The document of product.md: every key is always present.
Json whatif_document(const WhatifReport& report);
std::string whatif_table(const WhatifReport& report, bool scores);

}  // namespace berth::cli
