#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"
#include "share/scene.h"

namespace berth::cli {

// How shares are computed: the same flags wherever they are (`berth shares`, the arbitrator, a scheduler, `berth up`).
struct ShareFlags {
    std::string policy = "surplus";
    bool no_spread = false;
    std::vector<std::string> infinite;
    base::Duration min_run{0};
    std::string victims = "newest";
    std::string limits_factor;
    std::vector<std::string> storage;
};

void add_share_flags(CommandLine& line, ShareFlags& flags);
// All but the time.
Result<share::Settings> read_share_flags(const ShareFlags& flags);

}  // namespace berth::cli
