#pragma once

#include <string>
#include <vector>

#include "control/migration.h"

namespace berth::cli {

using control::migration_of;
using control::MigrationWishes;

// berth migrate pod NAME [-n NS] [--kubeconfig F] [--timeout S] [--pre-allocate] [--dry-run]
int migrate(std::vector<std::string> words);

}  // namespace berth::cli
