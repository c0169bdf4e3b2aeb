#include "cli/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/config_file.h"
#include "cli/dump.h"
#include "cli/explanation.h"
#include "cli/fleet.h"
#include "cli/live.h"
#include "cli/node_explanation.h"
#include "cli/output.h"
#include "cli/question.h"
#include "cli/share_flags.h"
#include "cli/shares.h"

namespace berth::cli {
namespace {

const std::vector<std::string> kPodNames{"pod", "pods", "po"};
const std::vector<std::string> kReservationNames{"reservation", "reservations"};
const std::vector<std::string> kNodeNames{"node", "nodes", "no"};
const std::vector<std::string> kMachineNames{"machine", "machines"};
const std::vector<std::string> kConsumerNames{"consumer", "consumers"};

struct Flags {
    std::string kind;
    std::string name;
    ServerFlags server;
    std::vector<std::string> files;
    Output output = Output::Table;
    QuestionFlags question;
};

bool is_one_of(const std::string& kind, const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), kind) != names.end();
}

template <class T>
std::string printed(const Flags& flags, const T& said, Json (*document)(const T&), std::string (*text)(const T&)) {
    return is_document(flags.output) ? document_text(document(said), flags.output) : text(said);
}

Result<std::string> explain_consumer(const Flags& flags) {
    share::Settings settings = TRY(read_share_flags(flags.question.share));
    settings.now = TRY(question_of(flags.question)).now;
    run::SharesScene gathered(settings.now);
    TRY(load_shares("berth explain", flags.files, flags.server, gathered));
    const share::Scene scene = gathered.take(settings.limits_factor.has_value());
    const share::Answer answer = share::answer(scene, settings);
    if (is_document(flags.output)) {
        const Json all = shares_document(scene, answer);
        for (const auto& consumer : all.at("consumers").as_array()) {
            if (base::find_string(consumer, {"name"}) == flags.name) return document_text(consumer, flags.output);
        }
    }
    return consumer_text(scene, settings, answer, flags.name);
}

// Whoever publishes what namespaces deserve has been asked for shares.
Result<bool> shares_in_force(link::ApiClient& server) {
    bool any = false;
    TRY(list_all(server, fmt::format("/apis/{}/v1/allocations", model::kSharesGroup), "Allocation",
                 [&](const Json&) -> Status {
                     any = true;
                     return {};
                 }));
    return any;
}

Result<std::string> explain_machine(const Flags& flags) {
    if (!flags.files.empty()) return base::bad_request("a machine is asked of a live server; leave out -f");
    const Connection connection = TRY(open_connection(flags.server));
    const Json said = TRY(machine_explanation(*connection.server, connection.ns, flags.name));
    return is_document(flags.output) ? document_text(said, flags.output) : machine_text(said);
}

void print_remarks(const Loaded& loaded) {
    for (const auto& remark : loaded.remarks) fmt::print(stderr, "berth explain: warning: {}\n", remark);
}

Result<std::string> explain_in(const Flags& flags, const std::string& ns, run::World& world, const Foretold* foretold) {
    if (is_one_of(flags.kind, kNodeNames)) {
        world.cluster().prepare();
        return printed(flags, TRY(explain_node(world.ledger(), flags.name)), node_document, node_text);
    }
    const auto said = TRY(is_one_of(flags.kind, kPodNames) ? explain_pod(world, ns, flags.name, foretold)
                                                           : explain_reservation(world, flags.name, foretold));
    return printed(flags, said, explanation_document, explanation_text);
}

// As `berth whatif` would have it: with the pods that workloads want, without lost nodes, and each in its turn.
Result<std::string> explain_from_files(const Flags& flags) {
    Question question = TRY(question_of(flags.question));
    TRY(gather(flags.question, flags.files, question));
    const std::string ns = flags.server.ns.empty() ? "default" : flags.server.ns;
    if (is_one_of(flags.kind, kNodeNames)) {
        const Loaded loaded = TRY(load(question));
        print_remarks(loaded);
        return explain_in(flags, ns, *loaded.world, nullptr);
    }
    const Turn turn = TRY(load_until(question, {is_one_of(flags.kind, kReservationNames), ns, flags.name}));
    print_remarks(turn.loaded);
    return explain_in(flags, ns, *turn.loaded.world, &turn.foretold);
}

Result<std::string> answer(const Flags& flags) {
    if (is_one_of(flags.kind, kMachineNames)) return explain_machine(flags);
    if (is_one_of(flags.kind, kConsumerNames)) return explain_consumer(flags);
    if (!flags.files.empty()) return explain_from_files(flags);
    const Connection connection = TRY(open_connection(flags.server));
    run::ClusterOptions options;
    const bool shares = flags.question.shares || TRY(shares_in_force(*connection.server));
    if (shares) options.shares = TRY(read_share_flags(flags.question.share));
    if (!flags.question.config.empty()) {
        options.profiles = TRY(read_configuration_file(flags.question.config)).profiles;
    }
    run::World world(base::system_clock().wall(), std::move(options));
    TRY(load_live(*connection.server, world));
    return explain_in(flags, connection.ns, world, nullptr);
}

// What only files can be asked; empty: nothing.
std::string misuse(const Flags& flags) {
    if (const auto question = question_of(flags.question); !question) return question.error().message;
    const auto& asked = flags.question;
    const bool is_placed = is_one_of(flags.kind, kPodNames) || is_one_of(flags.kind, kReservationNames);
    if (!is_placed && (!asked.config.empty() || asked.no_preemption)) {
        return "--config and --no-preemption say how pods and reservations are placed";
    }
    if (!is_placed && !is_one_of(flags.kind, kNodeNames) && !asked.without_nodes.empty()) {
        return "--without-nodes is asked of pods, reservations and nodes";
    }
    const bool of_files = !asked.now.empty() || asked.no_preemption || !asked.without_nodes.empty();
    if (flags.files.empty() && of_files && !is_one_of(flags.kind, kConsumerNames)) {
        return "--now, --no-preemption and --without-nodes go with -f: a server is asked as it is";
    }
    return "";
}

}  // namespace

int explain(std::vector<std::string> words) {
    Flags flags;
    CommandLine line(
        "Says why a pod or reservation is where it is, or what keeps it from every node; of a node, who has what of "
        "it; of a consumer, what bounds it; of a machine, which pools said what.",
        "berth explain");
    std::vector<std::string> kinds;
    for (const auto& names : {kPodNames, kReservationNames, kNodeNames, kConsumerNames, kMachineNames}) {
        kinds.insert(kinds.end(), names.begin(), names.end());
    }
    line.option("kind", flags.kind, "pod, reservation, node, consumer or machine").required().one_of(kinds);
    line.option("name", flags.name, "its name").required();
    add_server_flags(line, flags.server);
    line.option("-f,--filename", flags.files, "explain from files instead of a live server; - is standard input");
    output_option(line, flags.output, {Output::Table, Output::Json, Output::Yaml});
    add_question_flags(line, flags.question);
    line.example("berth explain pod web-1", "what keeps it from every node, and what would help");
    line.example("berth explain node node-1", "who has what of it");
    line.example("berth explain -f dump.yaml pod web-1", "in a dump: what berth whatif decides of it, and why");
    if (const auto code = line.parse(std::move(words))) return *code;
    if (const std::string wrong = misuse(flags); !wrong.empty()) {
        line.fail(wrong);
        return kWrongUsage;
    }
    const auto said = answer(flags);
    if (!said) {
        fmt::print(stderr, "berth explain: {}\n", said.error().message);
        return kFailed;
    }
    fmt::print("{}", *said);
    return kDone;
}

}  // namespace berth::cli
