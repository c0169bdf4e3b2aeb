#include "app/arbitrator.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "app/address.h"
#include "app/attached.h"
#include "app/commands.h"
#include "app/health.h"
#include "app/server.h"
#include "app/webhook.h"
#include "base/log.h"
#include "base/private_file.h"
#include "cli/command.h"
#include "run/share_webhook_driver.h"

namespace berth::app {
namespace {

// Five thousand names; nodes as objects only where the scheduler cannot name them.
constexpr size_t kMostQuestion = 16u << 20;
constexpr double kSeconds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1};

struct Flags {
    AttachedOptions attached;
    ArbitratorFlags arbitrator;
    std::string extender, extender_secret;
    std::string webhook;
    std::string mode = "extender";
    bool dry_run = false;
};

std::optional<int> parse(std::vector<std::string> words, Flags& flags, run::ArbitratorOptions& options) {
    cli::CommandLine line(
        "Guarantees, limits and fair shares of namespaces against any Kubernetes API server: publishes what each "
        "deserves and takes back what others need.",
        "berth arbitrator");
    add_attached_flags(line, flags.attached);
    add_arbitrator_flags(line, flags.arbitrator);
    line.option("--extender", flags.extender,
                "HOST:PORT to answer schedulers at, /filter and /preempt in plain HTTP: let nobody else reach it");
    line.option("--extender-secret-file", flags.extender_secret,
                "a file with a word that the path begins with: urlPrefix is then http://HOST:PORT/WORD");
    line.option("--mode", flags.mode,
                "how pods are held that may not start: the schedulers ask, or a gate is taken from those that may")
        .one_of({"extender", "gates", "both"})
        .show_default();
    line.option(
        "--webhook", flags.webhook,
        "HOST:PORT where the API server reaches a webhook that judges Consumers, and with --mode gates or both gives "
        "new pods their gate");
    line.flag("--dry-run", flags.dry_run, "write nothing, log who would be evicted");
    line.example("berth arbitrator --kubeconfig ~/.kube/config", "beside `berth scheduler --shares`");
    line.example("berth arbitrator --kubeconfig F --extender 127.0.0.1:8899", "kube-scheduler asks at /filter");
    line.example("berth arbitrator --kubeconfig F --dry-run", "see what it would do");
    if (const auto code = line.parse(std::move(words))) return code;
    auto read = read_arbitrator_flags(flags.arbitrator);
    if (!read) {
        line.fail(read.error());
        return cli::kWrongUsage;
    }
    options = std::move(*read);
    options.gates = flags.mode != "extender";
    options.extender = flags.mode != "gates";
    options.dry_run = flags.dry_run;
    if (flags.dry_run && !flags.webhook.empty()) {
        line.fail("--webhook: --dry-run writes nothing, so no API server would ask it");
        return cli::kWrongUsage;
    }
    if (flags.extender.empty() && !flags.extender_secret.empty()) {
        line.fail(base::bad_request("--extender-secret-file: there is no --extender"));
        return cli::kWrongUsage;
    }
    if (flags.mode == "gates" && !flags.extender.empty()) {
        line.fail(base::bad_request("--extender: --mode gates has none; --mode both has"));
        return cli::kWrongUsage;
    }
    return std::nullopt;
}

// How the webhook's part of the process reaches the server: a way of its own, so that neither waits for the other.
struct ShareDoor {
    run::ShareWebhookOptions options;
    std::function<Result<std::unique_ptr<link::ApiClient>>()> connect;
};

Result<std::optional<ShareDoor>> open_share_webhook(const Flags& flags, const run::ArbitratorOptions& options) {
    if (flags.webhook.empty()) return std::optional<ShareDoor>();
    const Address address = TRY(parse_address("--webhook", flags.webhook));
    if (address.port == 0) return base::bad_request("--webhook: name a port, not 0");
    ShareDoor door;
    door.options.host = address.host;
    door.options.port = address.port;
    door.options.gates = options.gates;
    door.options.ungated.insert(options.settings.infinite.begin(), options.settings.infinite.end());
    door.connect = [attached = flags.attached] { return link::connect(attached.access, attached.remote); };
    TRY(door.connect());
    return std::optional<ShareDoor>(std::move(door));
}

Result<std::string> read_secret(const std::string& file) {
    TRY(base::check_private(file));
    std::ifstream in(file);
    std::string word;
    in >> word;
    const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
    if (!word.empty() && plain) return word;
    return base::bad_request(fmt::format("--extender-secret-file {}: must hold one word of letters and digits", file));
}

class Arbitrator final : public Component {
public:
    Arbitrator(run::ArbitratorDriver::Doors doors, const run::ArbitratorOptions& options,
               const std::optional<ShareDoor>& door)
        : thread_("arbitrator", base::system_clock(), [&](link::Wake wake) {
              doors.wake = std::move(wake);
              return std::make_unique<run::ArbitratorDriver>(std::move(doors), options);
          }) {
        if (!door) return;
        auto way = door->connect();
        if (!way) {
            base::log_error("The webhook has no way to the server", {{"error", way.error()}});
            return;
        }
        const auto make = [&](run::WebhookJudge::Doors webhook, std::string path) {
            run::ShareWebhookOptions more = door->options;
            more.path = std::move(path);
            return std::make_unique<run::ShareWebhookDriver>(std::move(webhook), std::move(more));
        };
        webhook_.emplace(std::move(*way), Webhook::Place{door->options.host, door->options.port, door->options.path},
                         make, base::system_clock());
    }
    bool synced() const override { return thread_.synced() && (!webhook_ || webhook_->synced()); }

private:
    DriverThread thread_;
    std::optional<Webhook> webhook_;
};

}  // namespace

void add_arbitrator_flags(cli::CommandLine& line, ArbitratorFlags& flags) {
    cli::add_share_flags(line, flags.share);
    line.duration("--cycle", flags.cycle, "the least time between two computations, from 100ms to 60s");
    line.duration(
        "--grace", flags.grace,
        "how long those who have too much may choose for themselves what goes; a Consumer's gracePeriod wins");
}

Result<run::ArbitratorOptions> read_arbitrator_flags(const ArbitratorFlags& flags) {
    run::ArbitratorOptions options;
    options.settings = TRY(cli::read_share_flags(flags.share));
    if (flags.cycle < std::chrono::milliseconds(100) || flags.cycle > std::chrono::seconds(60))
        return base::bad_request("--cycle: must be from 100ms to 60s");
    if (flags.grace < base::Duration::zero()) return base::bad_request("--grace: must not be negative");
    options.cycle = flags.cycle;
    options.grace = flags.grace;
    return options;
}

Result<std::unique_ptr<ExtenderPort>> ExtenderPort::open(const std::string& text, const std::string& secret_file,
                                                         base::Metrics& metrics) {
    const Address address = TRY(parse_address("--extender", text));
    std::unique_ptr<ExtenderPort> out(new ExtenderPort);
    if (!secret_file.empty()) out->secret_ = "/" + TRY(read_secret(secret_file));
    out->seconds_ =
        &metrics.histogram("berth_share_extender_seconds", "How long questions of schedulers took.", {}, kSeconds);
    api::HttpOptions http;
    http.host = address.host;
    http.port = address.port;
    http.threads = 1;
    http.max_connections = 1000;
    http.max_body = kMostQuestion;
    http.max_idle_per_peer = http.max_connections;  // schedulers do not say who they are
    http.unknown_idle_seconds = http.idle_seconds;
    out->http_ = std::make_unique<api::HttpServer>(
        http, [self = out.get()](const api::Request& request, api::Responder responder) {
            responder.respond(self->answer(request));
        });
    add_http_metrics(metrics, "berth_share_extender_http", out->http_->counters());
    out->port_ = TRY(out->http_->start());
    base::log_info("Schedulers may ask", {{"host", address.host}, {"port", out->port_}});
    return out;
}

api::Response ExtenderPort::answer(const api::Request& request) const {
    // A page in a browser that can reach this port names where it is from.
    if (!request.header("origin").empty()) return {403, "text/plain", {}, "no page may ask\n"};
    const std::string_view path = request.path;
    const bool knows = path.size() >= secret_.size() && CRYPTO_memcmp(path.data(), secret_.data(), secret_.size()) == 0;
    const auto verb = knows ? path.substr(secret_.size()) : "";
    if (verb != "/filter" && verb != "/preempt") return {404, "text/plain", {}, "404 page not found\n"};
    if (request.method != "POST") return {405, "text/plain", {}, "only POST\n"};
    const auto begin = base::system_clock().now();
    auto reply = verb == "/filter" ? desk_->filter(request.body, begin) : desk_->preempt(request.body, begin);
    const auto took = std::chrono::duration<double>(base::system_clock().now() - begin);
    seconds_->observe(took.count());
    return {reply.code, reply.code == 200 ? "application/json" : "text/plain", {}, std::move(reply.body)};
}

int arbitrator(std::vector<std::string> words) {
    Flags flags;
    flags.attached.lease_name = "berth-arbitrator";
    flags.attached.bind_address = "127.0.0.1:10261";
    flags.attached.leader_elect = true;
    run::ArbitratorOptions options;
    if (const auto code = parse(std::move(words), flags, options)) return *code;
    block_stop_signals();
    base::Metrics questions;  // the port is there before, and without, what leads
    std::unique_ptr<ExtenderPort> port;
    if (!flags.extender.empty()) {
        auto opened = ExtenderPort::open(flags.extender, flags.extender_secret, questions);
        if (!opened) {
            fmt::print(stderr, "berth arbitrator: {}\n", opened.error().message);
            return cli::kFailed;
        }
        port = std::move(*opened);
    }
    const auto door = open_share_webhook(flags, options);
    if (!door) {
        fmt::print(stderr, "berth arbitrator: {}\n", door.error().message);
        return cli::kFailed;
    }
    const auto start = [&](std::unique_ptr<link::ApiClient> server, base::Metrics& metrics) {
        metrics.add_page([&questions](std::string& out) { out += questions.text(); });
        run::ArbitratorDriver::Doors doors{std::move(server), {}, metrics, port ? port->desk() : nullptr};
        return std::make_unique<Arbitrator>(std::move(doors), options, *door);
    };
    return run_attached("berth arbitrator", flags.attached, start);
}

}  // namespace berth::app
