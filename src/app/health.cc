#include "app/health.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

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

}  // namespace

void add_process_metrics(base::Metrics& metrics) {
    const auto start = static_cast<double>(std::time(nullptr));
    metrics.add_reading("process_cpu_seconds_total", "User and system time.", "counter", cpu_seconds);
    metrics.add_reading("process_resident_memory_bytes", "Resident memory.", "gauge", resident_bytes);
    metrics.add_reading("process_open_fds", "Open files and sockets.", "gauge", open_files);
    metrics.add_reading("process_start_time_seconds", "When the process began, in seconds since 1970.", "gauge",
                        [start] { return start; });
}

Status HealthServer::start(const std::string& host, uint16_t port) {
    api::HttpOptions options;
    options.host = host;
    options.port = port;
    options.threads = 1;
    options.max_connections = 200;
    options.max_body = 0;
    http_ = std::make_unique<api::HttpServer>(
        options, [this](const api::Request& request, api::Responder responder) { responder.respond(answer(request)); });
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
        return {200, "text/plain; version=0.0.4; charset=utf-8", {}, metrics_.text()};
    }
    return plain(404, "404 page not found\n");
}

}  // namespace berth::app
