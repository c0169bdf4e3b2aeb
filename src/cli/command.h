#pragma once

#include <string>
#include <vector>

namespace berth::cli {

// Exit codes of every command.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kWrongUsage = 2;
inline constexpr int kDoesNotFit = 3;  // only where it is asked for

// A subcommand of `berth`: gets the words after its name. The list of them is in app/main.cc.
struct Command {
    const char* name;
    const char* summary;
    int (*run)(std::vector<std::string> words);
};

}  // namespace berth::cli
