#pragma once

#include <optional>
#include <string>
#include <vector>

#include "link/connect.h"

namespace CLI {
class App;
}

namespace berth::app {

// What the components that attach to a server have in common: where it is, and how to stop.
struct AttachedOptions {
    link::AccessOptions access;
    link::RemoteOptions remote;
};

// A flag such as 24h or 500ms; never negative.
void add_duration_flag(CLI::App& app, const std::string& name, base::Duration& value, const std::string& help);
void add_attached_flags(CLI::App& app, AttachedOptions& options);

// Parses the words of a command; an exit code when there is nothing more to do.
std::optional<int> parse_words(CLI::App& app, std::vector<std::string> words);

}  // namespace berth::app
