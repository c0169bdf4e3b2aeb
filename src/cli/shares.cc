#include "cli/shares.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/dump.h"
#include "cli/input_check.h"
#include "cli/output.h"
#include "cli/share_flags.h"
#include "model/times.h"

namespace berth::cli {
namespace {

struct Flags {
    std::vector<std::string> files;
    ServerFlags server;
    ShareFlags share;
    Output output = Output::Table;
    std::string now;
};

Result<share::Settings> settings_of(const Flags& flags) {
    share::Settings settings = TRY(read_share_flags(flags.share));
    settings.now = base::system_clock().wall();
    if (flags.now.empty()) return settings;
    const auto time = model::parse_time(flags.now);
    if (!time) return base::bad_request(fmt::format("--now: {}", time.error().message));
    settings.now = *time;
    return settings;
}

}  // namespace

Status load_shares(const char* command, const std::vector<std::string>& files, const ServerFlags& server,
                   run::SharesScene& scene) {
    if (files.empty()) {
        const auto connection = TRY(open_connection(server));
        const auto put = [&](const Json& object) -> Status {
            TRY(scene.put(object));
            return {};
        };
        for (const auto& kind : ledger::kinds())
            TRY(list_all(*connection.server, fmt::format("{}/{}", kind.path(), kind.plural), kind.kind, put));
    }
    InputCheck check;
    TRY(load_files(files, [&](const Json& object) {
        check.see(object);
        return scene.put(object);
    }));
    for (const auto& remark : check.remarks()) fmt::print(stderr, "{}: warning: {}\n", command, remark);
    for (const auto& warning : scene.warnings()) fmt::print(stderr, "{}: warning: {}\n", command, warning);
    return {};
}

int shares(std::vector<std::string> words) {
    Flags flags;
    CommandLine line(
        "Says what each namespace deserves, who borrows from whom, who may start and who would have to go.",
        "berth shares");
    line.option(
        "-f,--filename", flags.files,
        "YAML or JSON files with nodes, namespaces, pods, consumers...; - is standard input; default: a live server");
    add_server_flags(line, flags.server);
    add_share_flags(line, flags.share);
    line.option("--now", flags.now, "the time to decide at, RFC 3339; default: now");
    output_option(line, flags.output, {Output::Table, Output::Json, Output::Yaml});
    line.example("berth shares", "of the server of the kubeconfig");
    line.example("berth shares -f dump.yaml --policy floor -o yaml", "of a dump, by the larger of guarantee and share");
    if (const auto code = line.parse(std::move(words))) return *code;
    const auto settings = settings_of(flags);
    if (!settings) {
        line.fail(settings.error());
        return kWrongUsage;
    }
    run::SharesScene gathered(settings->now);
    const auto loaded = load_shares("berth shares", flags.files, flags.server, gathered);
    if (!loaded) return line.fail(loaded.error());
    const share::Scene scene = gathered.take(settings->limits_factor.has_value());
    const share::Answer answer = share::answer(scene, *settings);
    if (is_document(flags.output)) {
        print_document(shares_document(scene, answer), flags.output);
    } else {
        fmt::print("{}", shares_text(scene, answer));
    }
    return kDone;
}

}  // namespace berth::cli
