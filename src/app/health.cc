#include "app/health.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "app/address.h"

namespace berth::app {
namespace {

api::Response plain(int status, std::string body) {
    return {status, "text/plain; charset=utf-8", {}, std::move(body)};
}

double cpu_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// The second number of /proc/self/statm, in pages.
double resident_bytes() {
    std::ifstream in("/proc/self/statm");
    double total = 0, resident = 0;
    in >> total >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double open_files() {
    std::error_code ignored;
    const std::filesystem::directory_iterator all("/proc/self/fd", ignored);
    return static_cast<double>(std::distance(begin(all), end(all)));
}

// The first word of the file; nothing when there is none.
std::string read_token(const std::string& file) {
    std::ifstream in(file);
    std::string out;
    in >> out;
    return out;
}

}  // namespace

void add_process_metrics(base::Metrics& metrics) {
    const auto start = static_cast<double>(std::time(nullptr));
    metrics.add_reading("process_cpu_seconds_total", "User and system time.", "counter", cpu_seconds);
    metrics.add_reading("process_resident_memory_bytes", "Resident memory.", "gauge", resident_bytes);
    metrics.add_reading("process_open_fds", "Open files and sockets.", "gauge", open_files);
    metrics.add_reading("process_start_time_seconds", "When the process began, in seconds since 1970.", "gauge",
                        [start] { return start; });
}

void add_http_metrics(base::Metrics& metrics, const std::string& prefix,
                      const std::shared_ptr<const api::HttpCounters>& counters) {
    const auto add = [&](std::string_view name, std::string_view help, std::string_view type, auto member) {
        metrics.add_reading(fmt::format("{}_{}", prefix, name), help, type, [counters, member] {
            return static_cast<double>(((*counters).*member).load(std::memory_order_relaxed));
        });
    };
    using Counters = api::HttpCounters;
    add("connections", "Open connections.", "gauge", &Counters::connections);
    add("streams", "Open watches, and large answers under way.", "gauge", &Counters::streams);
    add("held_bytes", "Bytes of requests that are read or being answered.", "gauge", &Counters::held);
    add("slow_closed_total", "Connections cut because the client did not read.", "counter", &Counters::slow_closed);
    add("evicted_total", "Unknown clients' connections closed because their place was needed.", "counter",
        &Counters::evicted);
    add("too_much_total", "Requests refused because others hold too many bytes.", "counter", &Counters::too_much);
    add("refused_total", "Requests that are no HTTP, or larger than a limit.", "counter", &Counters::refused);
    add("exceptions_total", "Connections ended by an exception: each is a bug.", "counter", &Counters::exceptions);
}

bool may_read_metrics(const api::Request& request, const std::string& token_file) {
    if (Address{request.address}.loopback() && api::is_address(api::host_of(request.header("host")))) return true;
    constexpr std::string_view kBearer = "Bearer ";
    const auto shown = request.header("authorization");
    if (token_file.empty() || !shown.starts_with(kBearer)) return false;
    const std::string token = read_token(token_file);
    return !token.empty() && shown.size() == kBearer.size() + token.size() &&
           CRYPTO_memcmp(shown.data() + kBearer.size(), token.data(), token.size()) == 0;
}

Status HealthServer::start(HealthOptions options) {
    options_ = std::move(options);
    api::HttpOptions http;
    http.host = options_.host;
    http.port = options_.port;
    http.threads = 1;
    http.max_connections = 200;
    http.max_body = 0;
    http.max_headers = 16u << 10;
    http_ = std::make_unique<api::HttpServer>(
        http, [this](const api::Request& request, api::Responder responder) { responder.respond(answer(request)); });
    add_http_metrics(metrics_, "berth_http", http_->counters());
    TRY(http_->start());
    return {};
}

api::Response HealthServer::answer(const api::Request& request) const {
    if (request.method != "GET" && request.method != "HEAD") return plain(405, "only GET is served here\n");
    if (request.path == "/healthz" || request.path == "/livez") return plain(200, "ok");
    if (request.path == "/readyz") {
        const std::string why = unready_();
        return why.empty() ? plain(200, "ok") : plain(500, why + "\n");
    }
    if (request.path == "/metrics") {
        if (!may_read_metrics(request, options_.metrics_token_file)) {
            return plain(401, "metrics are for this machine, or for the bearer of the token in --metrics-token-file\n");
        }
        return {200, "text/plain; version=0.0.4; charset=utf-8", {}, metrics_.text()};
    }
    return plain(404, "404 page not found\n");
}

}  // namespace berth::app
