#pragma once

#include <string>
#include <vector>

namespace berth::cli {

// berth explain pod|reservation NAME [-n NS] [--kubeconfig F | -f FILE...] [-o table|json]
int explain(std::vector<std::string> words);

}  // namespace berth::cli
