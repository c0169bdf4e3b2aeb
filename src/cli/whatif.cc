#include "cli/whatif.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/dump.h"
#include "cli/output.h"
#include "cli/question.h"

namespace berth::cli {
namespace {

// Far more than fits; whoever asks for more says so.
constexpr int64_t kMostFit = 10'000;

struct Flags {
    std::vector<std::string> files;
    Output output = Output::Table;
    QuestionFlags question;
    bool scores = false;
    bool exit_code = false;
    std::vector<std::string> drain;
    std::string drain_selector;
    std::string fit;
    int64_t most = 0;
    std::string need;
    std::vector<std::string> shape, shape_labels;
};

// Which flags go together; empty: they do.
std::string misuse(const Flags& flags) {
    const bool drains = !flags.drain.empty() || !flags.drain_selector.empty();
    const int questions = drains + !flags.fit.empty() + !flags.need.empty();
    if (questions > 1) return "--drain, --fit and --need are questions of their own: ask one at a time";
    const bool named =
        std::any_of(flags.drain.begin(), flags.drain.end(), [](const auto& name) { return !name.empty(); });
    if (drains && !named && flags.drain_selector.empty()) return "--drain: which nodes? Name them, or give -l SELECTOR";
    if (flags.most != 0 && flags.fit.empty()) return "--max says how many --fit looks for";
    if (!flags.need.empty() && flags.shape.empty()) return "--need: which nodes? Give --shape cpu=8,memory=32Gi";
    if (flags.need.empty() && (!flags.shape.empty() || !flags.shape_labels.empty())) {
        return "--shape says what nodes --need would add";
    }
    return "";
}

int fail(const Error& error) {
    fmt::print(stderr, "berth whatif: {}\n", error.message);
    return kFailed;
}

void print_remarks(const Loaded& loaded) {
    for (const auto& remark : loaded.remarks) fmt::print(stderr, "berth whatif: warning: {}\n", remark);
}

Result<std::vector<std::string>> nodes_to_drain(const Flags& flags, const run::World& world) {
    std::vector<std::string> out;
    if (!flags.drain_selector.empty()) out = TRY(nodes_of(world, flags.drain_selector));
    for (const auto& name : flags.drain) {
        if (name.empty()) continue;  // of --drain -l SELECTOR
        if (world.ledger().row_of(name) == ledger::kNoRow) {
            return base::bad_request(fmt::format("--drain: there is no node \"{}\"", name));
        }
        if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
    return out;
}

Result<Json> pod_in(const std::string& file) {
    const auto objects = TRY(read_object_file(file));
    if (objects.size() != 1) {
        return base::bad_request(
            fmt::format("--fit {}: one pod or workload is expected, there are {} objects", file, objects.size()));
    }
    auto pod = WorkloadPods::pod_of(objects.front());
    if (pod) return std::move(*pod);
    return base::bad_request(fmt::format("--fit {}: \"{}\" is neither a pod nor a workload with a template", file,
                                         base::find_string(objects.front(), {"kind"})));
}

// Nobody goes for those that more nodes are sought for.
Result<WhatifReport> answer_need(const Flags& flags, Question question) {
    Question wanted;
    TRY(wanted.read(flags.need));
    question.options.preempts = false;
    bool said = false;
    const auto make = [&](int64_t nodes) -> Result<Trial> {
        std::vector<Question::Document> more;
        for (int64_t i = 1; i <= nodes; ++i) {
            more.emplace_back("--shape", TRY(node_of_shape(flags.shape, flags.shape_labels, i)));
        }
        more.insert(more.end(), wanted.documents.begin(), wanted.documents.end());
        Loaded loaded = TRY(load(question, more));
        if (!std::exchange(said, true)) print_remarks(loaded);
        if (loaded.added.empty()) {
            return base::bad_request(fmt::format("--need {}: nothing in it wants a place", flags.need));
        }
        Trial trial{std::move(loaded.world), {}, static_cast<int64_t>(loaded.added.size()), 0};
        trial.answers = trial.world->settle();
        for (const auto& answer : trial.answers) {
            trial.refused += loaded.has_added(answer) && answer.node.empty();
        }
        return trial;
    };
    TRY(node_of_shape(flags.shape, flags.shape_labels, 1));
    WhatifReport report;
    report.need = TRY(need(make));
    report.answers = report.need->trial.answers;
    report.holdings = report.need->trial.world->holdings();
    return report;
}

Result<WhatifReport> answer(const Flags& flags, Question question) {
    TRY(gather(flags.question, flags.files, question));
    if (!flags.need.empty()) return answer_need(flags, std::move(question));
    const Loaded loaded = TRY(load(question));
    run::World& world = *loaded.world;
    print_remarks(loaded);
    WhatifReport report;
    if (const auto nodes = TRY(nodes_to_drain(flags, world)); !nodes.empty()) {
        report.drain = drain(world, nodes, report.answers);
    } else {
        report.answers = world.settle();
    }
    if (!flags.fit.empty()) {
        report.fit_wanted = std::max<int64_t>(flags.most, 1);
        const Json pod = TRY(pod_in(flags.fit));
        report.fit = TRY(fit(world, pod, flags.most == 0 ? kMostFit : flags.most));
    }
    report.holdings = world.holdings();
    return report;
}

void declare(CommandLine& line, Flags& flags) {
    line.option("-f,--filename", flags.files,
                "YAML or JSON files with nodes, pods, reservations...; - is standard input")
        .required();
    output_option(line, flags.output, {Output::Table, Output::Wide, Output::Json, Output::Yaml, Output::Name});
    line.flag("--scores", flags.scores, "also print the score of every feasible node");
    line.flag("--exit-code", flags.exit_code, "end with 3 when something does not fit");
    line.option("--drain", flags.drain, "nodes to drain: where their pods go, and what stands in the way")
        .may_be_empty();
    line.option("-l,--selector", flags.drain_selector, "the nodes to drain by their labels");
    line.option("--fit", flags.fit, "a file with a pod or a workload: how many more of its pods fit");
    line.option("--max", flags.most, "look for so many with --fit").within(1, 1'000'000);
    line.option("--need", flags.need, "a file with pods or workloads: how many nodes of --shape they need");
    line.option("--shape", flags.shape, "what a node has that --need would add, e.g. cpu=8,memory=32Gi")
        .separated_by(',');
    line.option("--shape-labels", flags.shape_labels, "labels of such a node, e.g. zone=a").separated_by(',');
    add_question_flags(line, flags.question);
    line.example("kubectl get nodes,pods,reservations -A -o yaml | berth whatif -f -",
                 "where what is pending would go");
    line.example("berth whatif -f dump.yaml --drain node-3", "what `kubectl drain node-3` would do");
    line.example("berth whatif -f dump.yaml --fit pod.yaml --max 50 --exit-code", "whether fifty more of it fit");
    line.example("berth whatif -f dump.yaml --shares", "with guarantees, limits and fair shares of namespaces");
    line.example("berth whatif -f dump.yaml --need web.yaml --shape cpu=8,memory=32Gi", "how many nodes to add");
}

}  // namespace

int whatif(std::vector<std::string> words) {
    Flags flags;
    CommandLine line("Schedules what is pending in a dump of a cluster, offline, and says what happened and why.",
                     "berth whatif");
    declare(line, flags);
    if (const auto code = line.parse(std::move(words))) return *code;
    auto question = question_of(flags.question);
    if (!question) {
        fail(question.error());
        return kWrongUsage;
    }
    if (const std::string wrong = misuse(flags); !wrong.empty()) {
        fail(base::bad_request(wrong));
        return kWrongUsage;
    }
    const auto report = answer(flags, std::move(*question));
    if (!report) return fail(report.error());
    if (is_document(flags.output)) {
        print_document(whatif_document(*report), flags.output);
    } else if (flags.output == Output::Name) {
        for (const auto& row : report->answers)
            fmt::print("{}/{}\n", row.is_reservation ? "reservation" : "pod", row.name);
    } else {
        fmt::print("{}", whatif_table(*report, flags.scores || flags.output == Output::Wide));
    }
    return flags.exit_code && !all_fits(*report) ? kDoesNotFit : kDone;
}

}  // namespace berth::cli
