#include "cli/explain.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/dump.h"
#include "cli/explanation.h"
#include "cli/live.h"

namespace berth::cli {
namespace {

struct Flags {
    std::string kind;
    std::string name;
    ServerFlags server;
    std::vector<std::string> files;
    std::string output = "table";
};

Result<Explanation> answer(const Flags& flags) {
    World world(base::system_clock().wall());
    std::string ns = flags.server.ns.empty() ? "default" : flags.server.ns;
    if (flags.files.empty()) {
        const auto connection = TRY(open_connection(flags.server));
        ns = connection.ns;
        TRY(load_live(*connection.server, world));
    }
    for (const auto& file : flags.files) {
        for (const auto& object : TRY(read_object_file(file))) TRY(world.put(object));
    }
    const bool pod = flags.kind == "pod" || flags.kind == "pods" || flags.kind == "po";
    return pod ? explain_pod(world, ns, flags.name) : explain_reservation(world, flags.name);
}

}  // namespace

int explain(std::vector<std::string> words) {
    Flags flags;
    CommandLine line("Says why a pod or reservation is where it is, or what keeps it from every node.",
                     "berth explain");
    line.option("kind", flags.kind, "pod or reservation")
        .required()
        .one_of({"pod", "pods", "po", "reservation", "reservations"});
    line.option("name", flags.name, "its name").required();
    add_server_flags(line, flags.server);
    line.option("-f,--filename", flags.files, "explain from files instead of a live server; - is standard input");
    line.option("-o,--output", flags.output, "table or json").one_of({"table", "json"});
    if (const auto code = line.parse(std::move(words))) return *code;
    const auto said = answer(flags);
    if (!said) {
        fmt::print(stderr, "berth: {}\n", said.error().message);
        return kFailed;
    }
    if (flags.output == "json") {
        fmt::print("{}\n", base::to_text(explanation_document(*said)));
    } else {
        fmt::print("{}", explanation_text(*said));
    }
    return kDone;
}

}  // namespace berth::cli
