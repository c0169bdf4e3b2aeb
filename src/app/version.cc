#include <fmt/format.h>

#include "app/commands.h"
#include "cli/command.h"

namespace berth::app {

int version(std::vector<std::string>) {
    fmt::print("berth {}\n", BERTH_VERSION);
    return cli::kDone;
}

}  // namespace berth::app
