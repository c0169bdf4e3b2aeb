#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace berth::cli {

// The values that a flag or word may have; for completion.
using Choices = std::map<const CLI::Option*, std::vector<std::string>>;

// A flag or word of a command; each call says more about it.
class Option {
public:
    Option(CLI::Option* option, Choices& choices) : option_(option), choices_(choices) {}
    Option& required();
    Option& one_of(std::vector<std::string> values);
    Option& within(int64_t least, int64_t most);
    Option& separated_by(char delimiter);
    // The flag alone says something, too.
    Option& may_be_empty();
    // The help names the value that it has without it.
    Option& show_default();

private:
    CLI::Option* option_;
    Choices& choices_;
};

// What a command understands. The unit behind it is the only one that includes CLI11, which is slow to compile.
class CommandLine {
public:
    CommandLine(const std::string& about, const std::string& name);
    ~CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    // `names` as in "-o,--output"; a name without a dash is a word that follows the command.
    Option option(const std::string& names, std::string& value, const std::string& help);
    Option option(const std::string& names, int& value, const std::string& help);
    Option option(const std::string& names, int64_t& value, const std::string& help);
    Option option(const std::string& names, uint64_t& value, const std::string& help);
    Option option(const std::string& names, std::vector<std::string>& value, const std::string& help);
    // Given to a function.
    Option option(const std::string& names, std::function<void(const std::string&)> set, const std::string& help);
    // Such as 24h or 500ms; never negative.
    void duration(const std::string& name, base::Duration& value, const std::string& help);
    void flag(const std::string& names, bool& value, const std::string& help);
    // How a server logs; parse() sets it.
    void logs();
    // A whole line as one would type it, and what comes of it; every command has some.
    CommandLine& example(const std::string& typed, const std::string& what);
    // One of several commands behind this one; one of them must be given.
    CommandLine& command(const std::string& name, const std::string& about);
    // A command behind this one that reads its own words; this one does something without it, too.
    void command_aside(const std::string& name, const std::string& about);
    bool given() const;

    // An exit code when there is nothing more to do: help was printed, or what is wrong.
    std::optional<int> parse(std::vector<std::string> words);

    // What went wrong, on standard error, behind the whole command; the exit code.
    int fail(const Error& error) const;
    int fail(const std::string& message) const;

private:
    CommandLine(CLI::App* command, Choices& choices);
    int refuse(const std::string& unknown) const;

    std::unique_ptr<CLI::App> whole_;  // nullptr in a command behind another one
    CLI::App* app_;
    Choices own_choices_;
    Choices& choices_;
    std::string examples_;
    std::vector<std::unique_ptr<CommandLine>> commands_;
    std::string log_format_ = "text";
    std::string log_level_ = "info";
};

// `berth kComplete WORDS... LAST` prints what LAST may become, each with what it is for; shells ask it.
inline constexpr std::string_view kComplete = "__complete";
// A line of that, if the word begins as the last one does.
void offer(std::string_view word, std::string_view about, std::string_view last);

}  // namespace berth::cli
