#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "share/answer.h"

namespace berth::cli {

// berth shares [-f FILE...] [--policy surplus|floor] [--no-spread] [--now TIME] [-o table|json]
int shares(std::vector<std::string> words);

// Every key is always present.
Json shares_document(const share::Scene& scene, const share::Answer& answer);
// The tree with a bar for each consumer, then who borrows from whom, who may start and who would go.
std::string shares_text(const share::Scene& scene, const share::Answer& answer);

}  // namespace berth::cli
