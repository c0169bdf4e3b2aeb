#pragma once

#include <string>
#include <vector>

namespace berth::cli {

// `berth agent plan`: what the agent of a node would do, computed once, without a server and without touching a
// machine.
int agent_plan(std::vector<std::string> words);

}  // namespace berth::cli
