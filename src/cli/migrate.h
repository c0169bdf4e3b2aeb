#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace berth::cli {

// The reservation that a pod's replacement will use: the pod's own template, anywhere but on its node, for pods of its
// controller. Errors say why the pod cannot be moved: not bound, going already, or nobody would make it again.
Result<Json> migration_of(const Json& pod, int ttl_s);

// berth migrate pod NAME [-n NS] [--kubeconfig F] [--timeout S] [--dry-run]
int migrate(std::vector<std::string> words);

}  // namespace berth::cli
