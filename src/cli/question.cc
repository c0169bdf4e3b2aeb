#include "cli/question.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/clock.h"
#include "cli/config_file.h"
#include "cli/dump.h"
#include "cli/input_check.h"
#include "model/times.h"

namespace berth::cli {
namespace {

constexpr size_t kMostNamed = 5;

// "a, b and 7 more"
template <class Names>
std::string listed(const Names& names) {
    std::vector<std::string> first;
    for (const auto& name : names) {
        if (first.size() < kMostNamed) first.push_back(name);
    }
    std::string text = fmt::format("{}", fmt::join(first, ", "));
    if (names.size() > kMostNamed) text += fmt::format(" and {} more", names.size() - kMostNamed);
    return text;
}

std::string plural(size_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::vector<std::string> kinds_that_count() {
    std::vector<std::string> out = WorkloadPods::kinds();
    for (const auto& kind : ledger::kinds()) out.emplace_back(kind.kind);
    return out;
}

// What of the documents is not taken as somebody wrote it.
struct Ignored {
    std::set<std::string> kinds;  // sentences
    InputCheck check;
};

Status put_all(const std::vector<Question::Document>& documents, Loaded& out, WorkloadPods& workloads,
               Ignored& ignored) {
    static const auto kCounting = kinds_that_count();
    bool understood = documents.empty();
    for (const auto& [file, object] : documents) {
        const std::string kind(base::find_string(object, {"kind"}));
        if (kind.empty()) {
            return base::bad_request(fmt::format("{}: {} has no kind", file, base::to_text(object).substr(0, 64)));
        }
        const bool workload = workloads.take(object);
        const auto known = out.world->put(object);
        if (!known) return base::bad_request(fmt::format("{}: {}", file, known.error().message));
        understood = understood || *known || workload;
        if (!*known && !workload) ignored.kinds.insert(ignored_kind(object, kCounting));
        ignored.check.see(object);
        if (const auto holding = out.world->unreadable_holders(); !holding.empty()) {
            return base::bad_request(fmt::format("{}: {}", file, holding.front()));
        }
    }
    if (understood) return {};
    return base::bad_request(fmt::format("{}: there is nothing in it that placement depends on: {}",
                                         documents.front().first, listed(ignored.kinds)));
}

void remark_expansion(const WorkloadPods::Expansion& expansion, Loaded& out) {
    if (!expansion.made.empty()) {
        std::vector<std::string> parts;
        for (const auto& made : expansion.made) parts.push_back(fmt::format("{} of {}", made.pods, made.workload));
        out.remarks.push_back(
            fmt::format("pods that workloads want and that are not there are placed too: {}", listed(parts)));
    }
    if (!expansion.not_counted.empty()) {
        out.remarks.push_back(fmt::format("not counted: {}", listed(expansion.not_counted)));
    }
}

void remark_homeless(const Leaving& left, Loaded& out) {
    if (!left.moved.empty()) {
        out.remarks.push_back(fmt::format("{} bound to nodes that are not there ({}): homeless, placed again",
                                          plural(left.moved.size(), "pod is", "pods are"), listed(left.nodes)));
    }
    if (!left.bare.empty()) {
        out.remarks.push_back(
            fmt::format("of these nobody makes those again that have no controller: {}", listed(left.bare)));
    }
    if (!left.gone.empty()) {
        out.remarks.push_back(fmt::format("{} gone with the node: {}", plural(left.gone.size(), "pod is", "pods are"),
                                          listed(left.gone)));
    }
}

// As `Loaded::added` names them.
std::set<std::string> all_in(const run::World& world) {
    std::set<std::string> out;
    world.cluster().each_pod([&](const model::Pod& pod) { out.insert(pod.meta.full_name()); });
    world.cluster().each_reservation([&](const model::Reservation& object) { out.insert(object.meta.name); });
    return out;
}

}  // namespace

Status Question::read(const std::string& file) {
    auto objects = TRY(read_object_file(file));
    if (objects.empty()) return base::bad_request(fmt::format("{}: there is nothing in it", file));
    for (auto& object : objects) documents.emplace_back(file, std::move(object));
    return {};
}

void add_question_flags(CommandLine& line, QuestionFlags& flags) {
    line.option("--now", flags.now, "the time to decide at, RFC 3339; default: now");
    line.option("--config", flags.config, "a KubeSchedulerConfiguration, in place of the default profile");
    line.flag("--no-preemption", flags.no_preemption, "evict nobody for a pod of higher priority");
    line.option("--without-nodes", flags.without_nodes, "take the nodes away that have these labels");
    line.flag("--shares", flags.shares,
              "pods start only where their namespace deserves it (Consumer); the flags below say how");
    add_share_flags(line, flags.share);
}

Result<Question> question_of(const QuestionFlags& flags) {
    Question out;
    out.now = base::system_clock().wall();
    if (!flags.now.empty()) {
        const auto time = model::parse_time(flags.now);
        if (!time) return base::bad_request(fmt::format("--now: {}", time.error().message));
        out.now = *time;
    }
    auto settings = TRY(read_share_flags(flags.share));
    if (flags.shares) out.options.shares = std::move(settings);
    out.without_nodes = flags.without_nodes;
    out.options.preempts = !flags.no_preemption;
    return out;
}

Status gather(const QuestionFlags& flags, const std::vector<std::string>& files, Question& out) {
    if (!flags.config.empty()) out.options.profiles = TRY(read_configuration_file(flags.config)).profiles;
    for (const auto& file : files) TRY(out.read(file));
    return {};
}

Result<Loaded> load(const Question& question, const std::vector<Question::Document>& more) {
    Loaded out;
    out.world = std::make_unique<run::World>(question.now, question.options);
    WorkloadPods workloads, further;
    Ignored ignored;
    TRY(put_all(question.documents, out, workloads, ignored));
    remark_expansion(TRY(workloads.expand(*out.world)), out);
    if (!question.without_nodes.empty()) {
        for (const auto& node : TRY(nodes_of(*out.world, question.without_nodes))) out.world->remove("Node", "", node);
    }
    remark_homeless(uproot_homeless(*out.world), out);
    if (!more.empty()) {
        const auto before = all_in(*out.world);
        TRY(put_all(more, out, further, ignored));
        remark_expansion(TRY(further.expand(*out.world)), out);
        for (const auto& name : all_in(*out.world)) {
            if (!before.contains(name)) out.added.insert(name);
        }
    }
    for (const auto& kind : ignored.kinds) out.remarks.push_back(kind);
    for (auto& remark : ignored.check.remarks()) out.remarks.push_back(std::move(remark));
    for (auto& warning : out.world->warnings()) out.remarks.push_back(std::move(warning));
    return out;
}

// Whatif is asked first, for when the turn comes; then everything is done again up to there.
Result<Turn> load_until(const Question& question, const Asked& asked) {
    const auto is_it = [&](const run::Placement& answer) {
        const bool same_kind = answer.is_reservation == asked.is_reservation;
        return same_kind && answer.name == asked.name && (asked.is_reservation || answer.ns == asked.ns);
    };
    Turn out;
    Loaded whole = TRY(load(question));
    const auto answers = whole.world->settle();
    const auto own = std::find_if(answers.begin(), answers.end(), is_it);
    for (const auto& answer : answers) {
        const bool goes = std::find(answer.victims.begin(), answer.victims.end(), asked.ns + "/" + asked.name) !=
                          answer.victims.end();
        if (goes && !asked.is_reservation) out.foretold.evicted_by = answer.ns + "/" + answer.name;
        if (own != answers.end() && &answer < &*own) out.foretold.earlier += !answer.node.empty();
    }
    out.loaded = TRY(load(question));
    if (own == answers.end()) return out;
    out.foretold.from = own->from;
    if (!own->gated) out.foretold.error = own->error;
    if (own->node.empty()) out.foretold.message = own->message;
    if (own->error.empty()) out.loaded.world->cluster().settle_before(own->turn);
    return out;
}

}  // namespace berth::cli
