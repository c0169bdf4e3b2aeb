#include "cli/shares.h"

#include <fmt/format.h>

#include <charconv>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/dump.h"
#include "cli/output.h"
#include "model/times.h"

namespace berth::cli {
namespace {

struct Flags {
    std::vector<std::string> files;
    ServerFlags server;
    std::string policy = "surplus";
    Output output = Output::Table;
    std::string now;
    bool no_spread = false;
    std::vector<std::string> infinite;
    base::Duration min_run{0};
    std::string victims = "newest";
    std::string limits_factor;
    std::vector<std::string> storage;
};

Status read_storage(const std::vector<std::string>& given, model::Resources& out) {
    for (const auto& text : given) {
        const auto equals = text.find('=');
        const auto amount =
            equals == text.npos ? Result<Quantity>(base::bad_request("")) : Quantity::parse(text.substr(equals + 1));
        if (!amount || amount->is_negative())
            return base::bad_request(fmt::format("--storage: \"{}\" is not CLASS=AMOUNT", text));
        const std::string name = text.substr(0, equals);
        const std::string key =
            name.empty() ? std::string(model::kStorageKey) : fmt::format("{}{}", name, model::kClassStorageSuffix);
        out.set(TRY(model::intern_resource(key)), amount->value());
    }
    return {};
}

Status read_victims(const std::string& text, std::optional<uint64_t>& seed) {
    if (text == "newest") return {};
    const std::string_view rest = std::string_view(text).substr(std::min<size_t>(text.size(), 6));
    uint64_t number = 0;
    const bool numbered =
        rest.starts_with(':') && rest.size() > 1 &&
        std::from_chars(rest.data() + 1, rest.data() + rest.size(), number).ptr == rest.data() + rest.size();
    if (!text.starts_with("random") || (!rest.empty() && !numbered))
        return base::bad_request(fmt::format("--victims: \"{}\" is neither newest nor random[:SEED]", text));
    seed = number;
    return {};
}

Result<share::Settings> settings_of(const Flags& flags) {
    share::Settings settings;
    settings.policy = flags.policy == "floor" ? share::Policy::Floor : share::Policy::Surplus;
    settings.spread = !flags.no_spread;
    settings.min_run = flags.min_run;
    settings.now = base::system_clock().wall();
    if (!flags.now.empty()) {
        const auto time = model::parse_time(flags.now);
        if (!time) return base::bad_request(fmt::format("--now: {}", time.error().message));
        settings.now = *time;
    }
    if (!flags.infinite.empty()) settings.infinite = {flags.infinite.begin(), flags.infinite.end()};
    if (!flags.limits_factor.empty()) {
        const auto factor = Quantity::parse(flags.limits_factor);
        if (!factor || factor->is_negative())
            return base::bad_request(fmt::format("--limits-factor: \"{}\" is no number", flags.limits_factor));
        settings.limits_factor = static_cast<double>(factor->milli()) / 1000;
    }
    TRY(read_victims(flags.victims, settings.random_victims));
    TRY(read_storage(flags.storage, settings.storage));
    return settings;
}

}  // namespace

Status load_shares(const std::vector<std::string>& files, const ServerFlags& server, SharesScene& scene) {
    if (files.empty()) {
        const auto connection = TRY(open_connection(server));
        const auto put = [&](const Json& object) -> Status {
            TRY(scene.put(object));
            return {};
        };
        for (const auto& kind : ledger::kinds())
            TRY(list_all(*connection.server, fmt::format("{}/{}", kind.path(), kind.plural), kind.kind, put));
        TRY(list_all(*connection.server, "/api/v1/resourcequotas", "ResourceQuota", put));
        TRY(list_all(*connection.server, fmt::format("/apis/{}/v1/consumers", model::kSharesGroup), "Consumer", put));
    }
    TRY(load_files(files, [&](const Json& object) { return scene.put(object); }));
    for (const auto& warning : scene.warnings()) fmt::print(stderr, "berth: warning: {}\n", warning);
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
    line.option("--policy", flags.policy,
                "surplus: what is not reserved is shared; floor: the larger of guarantee and weighted share")
        .one_of({"surplus", "floor"})
        .show_default();
    line.flag("--no-spread", flags.no_spread, "what dominant shares leave is not filled by weight");
    line.option("--now", flags.now, "the time to decide at, RFC 3339; default: now");
    output_option(line, flags.output, {Output::Table, Output::Json, Output::Yaml});
    line.option("--infinite", flags.infinite, "namespaces that get what they ask for, by commas (default kube-system)")
        .separated_by(',');
    line.duration("--min-run", flags.min_run, "younger pods are not evicted");
    line.option("--victims", flags.victims, "newest, or random[:SEED]").show_default();
    line.option("--limits-factor", flags.limits_factor,
                "limits.* may add up to so many times what is allocatable; default: without end");
    line.option("--storage", flags.storage, "CLASS=AMOUNT: the capacity of a storage class; default: without end");
    line.example("berth shares", "of the server of the kubeconfig");
    line.example("berth shares -f dump.yaml --policy floor -o yaml", "of a dump, by the larger of guarantee and share");
    if (const auto code = line.parse(std::move(words))) return *code;
    const auto settings = settings_of(flags);
    if (!settings) {
        line.fail(settings.error());
        return kWrongUsage;
    }
    SharesScene gathered(settings->now);
    if (const auto loaded = load_shares(flags.files, flags.server, gathered); !loaded) return line.fail(loaded.error());
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
