#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/command.h"
#include "cli/near_word.h"
#include "model/times.h"

namespace berth::cli {

Option& Option::required() {
    option_->required();
    return *this;
}

Option& Option::one_of(std::vector<std::string> values) {
    choices_[option_] = values;
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
    : whole_(std::make_unique<CLI::App>(about, name)), app_(whole_.get()), choices_(own_choices_) {}

CommandLine::CommandLine(CLI::App* command, Choices& choices) : app_(command), choices_(choices) {}

CommandLine::~CommandLine() = default;

Option CommandLine::option(const std::string& names, std::string& value, const std::string& help) {
    return {app_->add_option(names, value, help), choices_};
}

Option CommandLine::option(const std::string& names, int& value, const std::string& help) {
    return {app_->add_option(names, value, help), choices_};
}

Option CommandLine::option(const std::string& names, int64_t& value, const std::string& help) {
    return {app_->add_option(names, value, help), choices_};
}

Option CommandLine::option(const std::string& names, uint64_t& value, const std::string& help) {
    return {app_->add_option(names, value, help), choices_};
}

Option CommandLine::option(const std::string& names, std::vector<std::string>& value, const std::string& help) {
    return {app_->add_option(names, value, help)->take_all(), choices_};
}

Option CommandLine::option(const std::string& names, std::function<void(const std::string&)> set,
                           const std::string& help) {
    return {app_->add_option_function<std::string>(names, std::move(set), help), choices_};
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

CommandLine& CommandLine::example(const std::string& typed, const std::string& what) {
    examples_ += fmt::format("{}  {}\n      {}", examples_.empty() ? "Examples:\n" : "\n", typed, what);
    app_->footer(examples_);
    return *this;
}

CommandLine& CommandLine::command(const std::string& name, const std::string& about) {
    app_->require_subcommand(1);
    commands_.push_back(std::unique_ptr<CommandLine>(new CommandLine(app_->add_subcommand(name, about), choices_)));
    return *commands_.back();
}

void CommandLine::command_aside(const std::string& name, const std::string& about) {
    app_->add_subcommand(name, about);
}

bool CommandLine::given() const {
    return app_->parsed();
}

namespace {

using Words = std::vector<std::string>;

// The command that was given behind this one, or behind that; else itself.
const CLI::App& innermost(const CLI::App& app) {
    const auto given = app.get_subcommands();
    return given.empty() ? app : innermost(*given.front());
}

std::string whole_name(const CLI::App& app) {
    const CLI::App* parent = app.get_parent();
    return parent == nullptr ? app.get_name() : whole_name(*parent) + " " + app.get_name();
}

Words flags_of(const CLI::App& app) {
    Words out;
    for (const auto* option : app.get_options()) {
        for (const auto& name : option->get_lnames()) out.push_back("--" + name);
    }
    return out;
}

Words commands_of(const CLI::App& app) {
    Words out;
    for (const auto* command : app.get_subcommands({})) out.push_back(command->get_name());
    return out;
}

const CLI::Option* option_named(const CLI::App& app, const std::string& word) {
    if (!word.starts_with('-')) return nullptr;
    for (const auto* option : app.get_options()) {
        if (option->check_name(word)) return option;
    }
    return nullptr;
}

const CLI::App* command_named(const CLI::App& app, const std::string& word) {
    const auto found = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == word; });
    return found.empty() ? nullptr : found.front();
}

void offer_choices(const CLI::Option& option, const Choices& choices, std::string_view last) {
    const auto found = choices.find(&option);
    if (found == choices.end()) return;
    for (const auto& value : found->second) offer(value, option.get_description(), last);
}

void offer_flags(const CLI::App& app, std::string_view last) {
    for (const auto* option : app.get_options()) {
        for (const auto& name : option->get_lnames()) offer("--" + name, option->get_description(), last);
    }
}

// What the last of the words may become. Where a file is wanted nothing is offered: shells know those.
void complete(const CLI::App& whole, const Words& words, const Choices& choices) {
    const CLI::App* app = &whole;
    const CLI::Option* wants = nullptr;  // a flag that its value must follow
    size_t position = 0;
    for (size_t i = 0; i + 1 < words.size(); ++i) {
        if (wants != nullptr) {
            wants = nullptr;
        } else if (const auto* option = option_named(*app, words[i])) {
            if (option->get_items_expected_max() > 0) wants = option;
        } else if (const auto* behind = command_named(*app, words[i])) {
            app = behind;
            position = 0;
        } else {
            ++position;
        }
    }
    const std::string_view last = words.empty() ? std::string_view() : words.back();
    if (wants != nullptr) return offer_choices(*wants, choices, last);
    if (last.starts_with('-')) return offer_flags(*app, last);
    for (const auto* command : app->get_subcommands({})) offer(command->get_name(), command->get_description(), last);
    for (const auto* option : app->get_options()) {
        if (option->get_positional() && position-- == 0) return offer_choices(*option, choices, last);
    }
}

}  // namespace

void offer(std::string_view word, std::string_view about, std::string_view last) {
    if (word.starts_with(last)) fmt::print("{}\t{}\n", word, about);
}

int CommandLine::fail(const std::string& message) const {
    fmt::print(stderr, "{}: {}\n", whole_name(innermost(*app_)), message);
    return kFailed;
}

int CommandLine::fail(const Error& error) const {
    return fail(error.message);
}

int CommandLine::refuse(const std::string& unknown) const {
    const CLI::App& app = innermost(*app_);
    const bool flag = unknown.starts_with('-');
    const std::string bare = unknown.substr(0, unknown.find('='));
    const Words known = flag ? flags_of(app) : commands_of(app);
    const std::string meant = near_word(bare, known);
    const auto* what = flag ? "unknown flag" : known.empty() ? "unexpected word" : "unknown command";
    const auto hint = meant.empty() ? std::string() : fmt::format("did you mean {}? ", meant);
    fail(fmt::format("{} \"{}\"; {}'{} --help' says what it understands", what, unknown, hint, whole_name(app)));
    return kWrongUsage;
}

std::optional<int> CommandLine::parse(Words words) {
    if (!words.empty() && words.front() == kComplete) {
        complete(*app_, {words.begin() + 1, words.end()}, choices_);
        return kDone;
    }
    std::reverse(words.begin(), words.end());
    try {
        app_->parse(std::move(words));
    } catch (const CLI::Success& help) {
        app_->exit(help);
        return kDone;
    } catch (const CLI::ParseError& error) {
        // A flag that does not exist says more than one that is missing: it may be that one, misspelt.
        const auto unknown = app_->remaining(true);
        if (!unknown.empty()) return refuse(unknown.front());
        fail(error.what());
        return kWrongUsage;
    }
    base::set_log({.level = *base::parse_log_level(log_level_), .format = *base::parse_log_format(log_format_)});
    return std::nullopt;
}

}  // namespace berth::cli
