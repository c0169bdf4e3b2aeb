#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace berth::link {

// A child process that prints something and ends. No shell reads its words, and it gets none of our files but the three
// standard ones.
struct Program {
    std::string command;  // without a slash: looked up in PATH
    std::vector<std::string> args = {};
    std::vector<std::pair<std::string, std::string>> env = {};  // besides ours, and before it
    bool at_terminal = false;  // our standard input and error; else it reads nothing and its errors are kept
    base::Duration most = std::chrono::seconds(30);
    size_t most_output = size_t{1} << 20;
};

struct ProgramEnd {
    int code = 0;  // 128 + the signal that ended it
    std::string output;
    std::string errors;  // the beginning of them
};

// Runs it and waits. An Error when it cannot be started, prints or lasts more than it may, or when `stop` becomes
// readable meanwhile: then it, and what it started, has been ended.
Result<ProgramEnd> run_program(const Program& program, int stop = -1, const base::Clock& clock = base::system_clock());

}  // namespace berth::link
