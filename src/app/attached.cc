#include "app/attached.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "model/times.h"

namespace berth::app {

void add_duration_flag(CLI::App& app, const std::string& name, base::Duration& value, const std::string& help) {
    app.add_option_function<std::string>(
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

void add_attached_flags(CLI::App& app, AttachedOptions& options) {
    app.add_option("--kubeconfig", options.access.kubeconfig,
                   "the server and who we are; default $KUBECONFIG, then a pod's service account, then ~/.kube/config");
    app.add_option("--context", options.access.context, "a context of the kubeconfig instead of its current one");
    app.add_option("--max-requests-in-flight", options.remote.in_flight, "requests at once, watches apart")
        ->capture_default_str()
        ->check(CLI::Range(1, 10'000));
}

std::optional<int> parse_words(CLI::App& app, std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    try {
        app.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? cli::kDone : cli::kWrongUsage;
    }
    return std::nullopt;
}

}  // namespace berth::app
