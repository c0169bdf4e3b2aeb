#include "cli/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/dump.h"
#include "cli/explanation.h"
#include "cli/live.h"
#include "cli/node_explanation.h"
#include "cli/output.h"
#include "cli/shares.h"

namespace berth::cli {
namespace {

const std::vector<std::string> kPodNames{"pod", "pods", "po"};
const std::vector<std::string> kReservationNames{"reservation", "reservations"};
const std::vector<std::string> kNodeNames{"node", "nodes", "no"};
const std::vector<std::string> kConsumerNames{"consumer", "consumers"};

struct Flags {
    std::string kind;
    std::string name;
    ServerFlags server;
    std::vector<std::string> files;
    Output output = Output::Table;
};

bool is_one_of(const std::string& kind, const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), kind) != names.end();
}

template <class T>
std::string printed(const Flags& flags, const T& said, Json (*document)(const T&), std::string (*text)(const T&)) {
    return is_document(flags.output) ? document_text(document(said), flags.output) : text(said);
}

Result<std::string> explain_consumer(const Flags& flags) {
    share::Settings settings;
    settings.now = base::system_clock().wall();
    SharesScene gathered(settings.now);
    TRY(load_shares(flags.files, flags.server, gathered));
    const share::Scene scene = gathered.take(false);
    const share::Answer answer = share::answer(scene, settings);
    if (is_document(flags.output)) {
        const Json all = shares_document(scene, answer);
        for (const auto& consumer : all.at("consumers").as_array()) {
            if (base::find_string(consumer, {"name"}) == flags.name) return document_text(consumer, flags.output);
        }
    }
    return consumer_text(scene, settings, answer, flags.name);
}

Result<std::string> answer(const Flags& flags) {
    if (is_one_of(flags.kind, kConsumerNames)) return explain_consumer(flags);
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
    if (is_one_of(flags.kind, kNodeNames)) {
        world.cluster().prepare();
        return printed(flags, TRY(explain_node(world.ledger(), flags.name)), node_document, node_text);
    }
    const bool pod = is_one_of(flags.kind, kPodNames);
    const auto said = TRY(pod ? explain_pod(world, ns, flags.name) : explain_reservation(world, flags.name));
    return printed(flags, said, explanation_document, explanation_text);
}

}  // namespace

int explain(std::vector<std::string> words) {
    Flags flags;
    CommandLine line(
        "Says why a pod or reservation is where it is, or what keeps it from every node; of a node, who has what of "
        "it; of a consumer, what bounds it.",
        "berth explain");
    std::vector<std::string> kinds;
    for (const auto& names : {kPodNames, kReservationNames, kNodeNames, kConsumerNames}) {
        kinds.insert(kinds.end(), names.begin(), names.end());
    }
    line.option("kind", flags.kind, "pod, reservation, node or consumer").required().one_of(kinds);
    line.option("name", flags.name, "its name").required();
    add_server_flags(line, flags.server);
    line.option("-f,--filename", flags.files, "explain from files instead of a live server; - is standard input");
    output_option(line, flags.output, {Output::Table, Output::Json, Output::Yaml});
    line.example("berth explain pod web-1", "what keeps it from every node, and what would help");
    line.example("berth explain node node-1", "who has what of it");
    if (const auto code = line.parse(std::move(words))) return *code;
    const auto said = answer(flags);
    if (!said) {
        fmt::print(stderr, "berth explain: {}\n", said.error().message);
        return kFailed;
    }
    fmt::print("{}", *said);
    return kDone;
}

}  // namespace berth::cli
