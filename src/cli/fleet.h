#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "link/api_client.h"

namespace berth::cli {

// `berth fleet tree`: layers, pools, who is ready, what is under way. Layers of the same machine are entered by the
// kubeconfig that their pool names.
Result<Json> fleet_tree(link::ApiClient& server, const std::string& name, const std::string& ns);
std::string fleet_tree_text(const Json& tree);

// `berth explain machine`: who was asked, who said what, and why.
Result<Json> machine_explanation(link::ApiClient& server, const std::string& ns, const std::string& name);
std::string machine_text(const Json& explanation);

}  // namespace berth::cli
