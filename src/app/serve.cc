#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/commands.h"
#include "app/components.h"
#include "cli/command.h"

namespace berth::app {

void add_server_flags(CLI::App& app, ServerOptions& options) {
    app.add_option("--data-dir", options.data_dir, "where objects, certificates and the kubeconfig live")
        ->capture_default_str();
    app.add_option("--listen", options.listen, "HOST:PORT; port 0 picks one")->capture_default_str();
    app.add_flag("--in-memory", options.in_memory, "keep objects in memory only");
    app.add_flag("--plain-http", options.plain_http, "no TLS; loopback addresses only");
    app.add_option("--io-threads", options.threads, "threads that serve connections")
        ->capture_default_str()
        ->check(CLI::Range(1, 64));
}

int serve(std::vector<std::string> words) {
    CLI::App app("The API server alone: Kubernetes' API over a durable store, for stock kubectl.", "berth serve");
    ServerOptions options;
    add_server_flags(app, options);
    std::reverse(words.begin(), words.end());
    try {
        app.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? cli::kDone : cli::kWrongUsage;
    }
    raise_file_limit();
    block_stop_signals();
    auto server = Server::start(options);
    if (!server) {
        fmt::print(stderr, "berth serve: {}\n", server.error().message);
        return cli::kFailed;
    }
    fmt::print("berth: ready {} kubeconfig={}\n", (*server)->url(), (*server)->kubeconfig());
    std::fflush(stdout);
    wait_for_stop([&] { (*server)->tick(); });
    return cli::kDone;
}

}  // namespace berth::app
