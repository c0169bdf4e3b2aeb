#include "model/version.h"

#include <fmt/format.h>

#include "app/commands.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/output.h"

namespace berth::app {

int version(std::vector<std::string> words) {
    cli::CommandLine line("Prints the version of this program, and of the Kubernetes API that it serves.",
                          "berth version");
    cli::Output output = cli::Output::Table;
    cli::output_option(line, output, {cli::Output::Table, cli::Output::Json, cli::Output::Yaml});
    line.example("berth version", "one line; --version says the same");
    line.example("berth version -o json", "for programs, with the version of Kubernetes' API");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (output == cli::Output::Table) {
        fmt::print("berth {}\n", BERTH_VERSION);
        return cli::kDone;
    }
    cli::print_document(JsonObject{{"version", BERTH_VERSION}, {"kubernetes", model::kServedVersion}}, output);
    return cli::kDone;
}

}  // namespace berth::app
