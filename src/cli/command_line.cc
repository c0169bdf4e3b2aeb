#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/command.h"
#include "model/times.h"

namespace berth::cli {

Option& Option::required() {
    option_->required();
    return *this;
}

Option& Option::one_of(std::vector<std::string> values) {
    option_->check(CLI::IsMember(std::move(values)));
    return *this;
}

Option& Option::within(int64_t least, int64_t most) {
    option_->check(CLI::Range(least, most));
    return *this;
}

Option& Option::separated_by(char delimiter) {
    option_->delimiter(delimiter);
    return *this;
}

Option& Option::may_be_empty() {
    option_->expected(0, CLI::detail::expected_max_vector_size);
    return *this;
}

Option& Option::show_default() {
    option_->capture_default_str();
    return *this;
}

CommandLine::CommandLine(const std::string& about, const std::string& name)
    : whole_(std::make_unique<CLI::App>(about, name)), app_(whole_.get()) {}

CommandLine::CommandLine(CLI::App* command) : app_(command) {}

CommandLine::~CommandLine() = default;

Option CommandLine::option(const std::string& names, std::string& value, const std::string& help) {
    return Option(app_->add_option(names, value, help));
}

Option CommandLine::option(const std::string& names, int& value, const std::string& help) {
    return Option(app_->add_option(names, value, help));
}

Option CommandLine::option(const std::string& names, int64_t& value, const std::string& help) {
    return Option(app_->add_option(names, value, help));
}

Option CommandLine::option(const std::string& names, uint64_t& value, const std::string& help) {
    return Option(app_->add_option(names, value, help));
}

Option CommandLine::option(const std::string& names, std::vector<std::string>& value, const std::string& help) {
    return Option(app_->add_option(names, value, help)->take_all());
}

void CommandLine::duration(const std::string& name, base::Duration& value, const std::string& help) {
    app_->add_option_function<std::string>(
        name,
        [&value, name](const std::string& text) {
            const auto duration = model::parse_duration(text);
            if (!duration || *duration < base::Duration::zero()) {
                throw CLI::ValidationError(name, fmt::format("\"{}\" is no duration such as 24h", text));
            }
            value = *duration;
        },
        fmt::format("{} (default {})", help, model::duration_text(value)));
}

void CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
    app_->add_flag(names, value, help);
}

void CommandLine::logs() {
    option("--logging-format", log_format_, "of the log on standard error").show_default().one_of({"text", "json"});
    option("--log-level", log_level_, "the least that is logged")
        .show_default()
        .one_of({"debug", "info", "warning", "error", "off"});
}

CommandLine& CommandLine::command(const std::string& name, const std::string& about) {
    app_->require_subcommand(1);
    commands_.push_back(std::unique_ptr<CommandLine>(new CommandLine(app_->add_subcommand(name, about))));
    return *commands_.back();
}

bool CommandLine::given() const {
    return app_->parsed();
}

std::optional<int> CommandLine::parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    try {
        app_->parse(std::move(words));
    } catch (const CLI::RequiredError& error) {
        // A flag that does not exist says more than one that is missing: it may be that one, misspelt.
        const auto unknown = app_->remaining();
        unknown.empty() ? app_->exit(error) : app_->exit(CLI::ExtrasError(unknown));
        return kWrongUsage;
    } catch (const CLI::ParseError& error) {
        return app_->exit(error) == 0 ? kDone : kWrongUsage;
    }
    base::set_log({.level = *base::parse_log_level(log_level_), .format = *base::parse_log_format(log_format_)});
    return std::nullopt;
}

}  // namespace berth::cli
