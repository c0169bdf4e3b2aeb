#include <fmt/format.h>

#include "app/commands.h"
#include "app/components.h"
#include "app/footprint.h"
#include "cli/command.h"
#include "cli/command_line.h"

namespace berth::app {

void add_server_flags(cli::CommandLine& line, ServerOptions& options) {
    line.option("--data-dir", options.data_dir, "where objects, certificates and the kubeconfig live").show_default();
    line.option("--listen", options.listen, "HOST:PORT; port 0 picks one").show_default();
    line.flag("--in-memory", options.in_memory, "keep objects in memory only");
    line.flag("--plain-http", options.plain_http, "no TLS; loopback addresses only");
    line.option("--io-threads", options.threads, "threads that serve connections").show_default().within(1, 64);
    line.option("--scheduler-config", options.scheduler_config,
                "a KubeSchedulerConfiguration (YAML or JSON): the profiles of up, in place of the default ones; and "
                "resources that it ignores are not looked at when a pod is bound");
    line.option("--audit-log", options.audit_log,
                "who wrote what, and every 401 and 403, as audit.k8s.io/v1 lines; default DATA_DIR/audit.log, with "
                "--in-memory none");
    line.option("--audit-log-maxsize", options.audit_max_mib, "MiB; a full file becomes FILE.1, FILE.2, ...")
        .show_default()
        .within(1, 1 << 20);
    line.option("--audit-log-maxbackup", options.audit_backups, "how many full files are kept")
        .show_default()
        .within(0, 1000);
    line.flag("--strict-policies", options.here.strict_policies,
              "refuse RBAC, quota, LimitRange, webhooks and other policy that is stored and not enforced");
    line.logs();
}

int serve(std::vector<std::string> words) {
    cli::CommandLine line("The API server alone: Kubernetes' API over a durable store, for stock kubectl.",
                          "berth serve");
    ServerOptions options;
    add_server_flags(line, options);
    line.flag("--fleet", options.fleet, "serve Machine, MachinePool, MachineClass and their Reservations, too");
    line.example("berth serve --data-dir /var/lib/berth --listen 0.0.0.0:6443", "for nodes and schedulers of your own");
    line.example("berth serve --in-memory --listen 127.0.0.1:0", "for a test; the line that it prints has the port");
    if (const auto code = line.parse(std::move(words))) return *code;
    raise_file_limit();
    block_stop_signals();
    Footprint made(options.data_dir);
    auto server = Server::start(options);
    if (!server) return line.fail(server.error());
    made.keep();
    fmt::print("berth: ready {} kubeconfig={}\n", (*server)->url(), (*server)->kubeconfig());
    std::fflush(stdout);
    wait_for_stop([&] { (*server)->tick(); });
    return cli::kDone;
}

}  // namespace berth::app
