#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace berth::cli {

struct MigrationWishes {
    int ttl_s = 0;
    bool pre_allocate = false;  // wait for room on a full node
};

// The reservation that a pod's replacement will use: the pod's own template, anywhere but on its node, for pods of its
// controller. Errors say why the pod cannot be moved: not bound, going already, or nobody would make it again.
Result<Json> migration_of(const Json& pod, const MigrationWishes& wishes);

// berth migrate pod NAME [-n NS] [--kubeconfig F] [--timeout S] [--pre-allocate] [--dry-run]
int migrate(std::vector<std::string> words);

}  // namespace berth::cli
