#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/live.h"
#include "run/shares_scene.h"
#include "share/answer.h"

namespace berth::cli {

// berth shares [-f FILE...] [--policy surplus|floor] [--no-spread] [--now TIME] [-o table|json]
int shares(std::vector<std::string> words);

// Fills the scene from files, or without them from a live server, and warns of
// what is not taken as it is written, in the name of the command.
Status load_shares(const char* command, const std::vector<std::string>& files, const ServerFlags& server,
                   run::SharesScene& scene);

// What bounds one consumer, what it borrows and lends, and who of it would go
// next.
Result<std::string> consumer_text(const share::Scene& scene, const share::Settings& settings,
                                  const share::Answer& answer, std::string_view name);

// Every key is always present.
Json shares_document(const share::Scene& scene, const share::Answer& answer);
// The tree with a bar for each consumer, then who borrows from whom, who may start and who would go.
std::string shares_text(const share::Scene& scene, const share::Answer& answer);

}  // namespace berth::cli
