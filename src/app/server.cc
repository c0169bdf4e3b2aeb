#include "app/server.h"

#include <fmt/format.h>
#include <jemalloc/jemalloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "api/authn.h"
#include "api/bootstrap.h"
#include "api/files.h"
#include "api/kubeconfig.h"
#include "api/pki.h"
#include "app/address.h"
#include "app/disk_watch.h"
#include "app/health.h"
#include "base/log.h"
#include "base/private_file.h"
#include "base/random.h"
#include "cli/config_file.h"
#include "model/kinds/kinds_fleet.h"
#include "store/sqlite_log.h"

#pragma weak mallctl

namespace berth::app {
namespace {

std::vector<std::string> certificate_hosts(const std::string& host) {
    std::vector<std::string> out{
        "localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1"};
    char name[256] = {};
    if (::gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0') out.emplace_back(name);
    const bool listed = std::find(out.begin(), out.end(), host) != out.end();
    if (!listed && host != "0.0.0.0" && host != "::") out.push_back(host);
    return out;
}

std::string url_host(const std::string& host) {
    if (host == "0.0.0.0") return "127.0.0.1";
    if (host == "::") return "[::1]";
    return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

Status write_kubeconfigs(const std::string& directory, const std::string& url, const api::Pki& pki, bool tls) {
    const std::string ca = tls ? pki.ca_pem : "";
    TRY(api::write_private_file(
        directory + "/kubeconfig",
        api::kubeconfig_text(url, ca, {"berth-admin", pki.admin.certificate_pem, pki.admin.key_pem}, pki.admin_token)));
    if (!tls) return {};
    return api::write_private_file(
        directory + "/scheduler.kubeconfig",
        api::kubeconfig_text(url, ca, {"berth-scheduler", pki.scheduler.certificate_pem, pki.scheduler.key_pem}, ""));
}

// What nobody uses goes back to the system ten seconds after it was freed, but only while the allocator is called: this
// is for quiet times.
void give_back_memory() {
    if (mallctl == nullptr) return;  // sanitizers bring their own allocator
    static_cast<void>(mallctl(fmt::format("arena.{}.decay", MALLCTL_ARENAS_ALL).c_str(), nullptr, nullptr, nullptr, 0));
}

// Its mode is its owner's business, since what we make in it is private anyway; but who may write there can also
// replace what is in it.
void warn_of_writers(const std::string& dir) {
    struct stat info{};
    if (::stat(dir.c_str(), &info) != 0 || (info.st_mode & S_IWOTH) == 0) return;
    base::log_warning("Everybody on this machine may write to the data directory: run chmod o-w", {{"dir", dir}});
}

Result<std::unique_ptr<api::AuditLog>> open_audit_log(const ServerOptions& options) {
    std::unique_ptr<api::AuditLog> none;
    if (options.audit_log == kNoAuditLog || (options.audit_log.empty() && options.in_memory)) return none;
    api::AuditLog::Options audit{options.audit_log, static_cast<uint64_t>(options.audit_max_mib) << 20,
                                 options.audit_backups};
    if (audit.path.empty()) audit.path = options.data_dir + "/audit.log";
    const auto folder = std::filesystem::absolute(audit.path).parent_path();
    std::error_code unknown;
    if (!std::filesystem::is_directory(folder, unknown)) {
        return base::bad_request(fmt::format("--audit-log {}: there is no directory {}", audit.path, folder.string()));
    }
    return std::make_unique<api::AuditLog>(std::move(audit));
}

}  // namespace

Status Server::open_store(const ServerOptions& options) {
    std::unique_ptr<store::Log> log;
    if (options.in_memory) {
        lock_ = TRY(store::DirLock::take({options.data_dir}));
        log = store::memory_log();
    } else {
        log = TRY(store::sqlite_log({options.data_dir}));
    }
    store_ = TRY(store::Store::open(std::move(log), {.history = options.history}));
    if (!options.in_memory) {
        const auto& found = store_->recovered();
        base::log_info("Opened the store",
                       {{"dir", options.data_dir}, {"objects", found.objects}, {"revision", found.revision}});
    }
    run::BindRules rules;
    if (!options.scheduler_config.empty()) {
        rules = run::BindRules(TRY(cli::read_configuration_file(options.scheduler_config)).profiles);
    }
    guard_ = std::make_unique<run::BindGuard>(*store_, std::move(rules));
    store_->set_guard(guard_.get());
    return {};
}

Status Server::open_door(const ServerOptions& options) {
    const Address address = TRY(parse_address("--listen", options.listen));
    if (options.plain_http && !address.loopback()) {
        return base::bad_request(fmt::format(
            "refusing to listen on {} without TLS: only loopback addresses may be served in the clear", address.host));
    }
    const auto hosts = certificate_hosts(address.host);
    const api::Pki pki = TRY(api::open_pki(options.data_dir + "/pki", hosts, base::system_clock().wall()));
    auto credentials = TRY(api::Credentials::open(options.data_dir + "/pki", base::system_clock()));
    context_ = std::make_unique<api::ApiContext>(*store_, base::system_clock(), base::seed_from_system());
    context_->here = options.here;
    if (options.fleet) context_->publish(std::make_shared<model::Kinds>(model::kinds_with_fleet()));
    context_->identify_token = [credentials](std::string_view token) { return credentials->identify(token); };
    context_->still_welcome = [credentials](const api::Identity& who) { return credentials->still_accepts(who); };
    audit_ = TRY(open_audit_log(options));
    if (audit_) context_->audit = [log = audit_.get()](api::AuditEvent&& event) { log->tell(std::move(event)); };
    front_ = std::make_unique<api::Front>(*context_, api::Authenticator(credentials));
    front_->set_hosts(hosts);
    api::HttpOptions http;
    http.host = address.host;
    http.port = address.port;
    http.threads = options.threads;
    if (!options.plain_http) http.tls = api::TlsKeys{pki.server.certificate_pem, pki.server.key_pem, pki.ca_pem};
    http_ = std::make_unique<api::HttpServer>(
        http,
        [front = front_.get()](api::Request request, api::Responder responder) {
            front->handle(std::move(request), std::move(responder));
        },
        [front = front_.get()](const api::Request& head) { return front->screen(head); });
    front_->set_wake([server = http_.get()] { server->wake(); });
    const uint16_t port = TRY(http_->start());
    ca_certificate_ = pki.ca_pem;
    if (!store_->failure()) TRY(api::make_first_objects(*context_, {port, pki.ca_pem}));
    url_ = fmt::format("{}://{}:{}", options.plain_http ? "http" : "https", url_host(address.host), port);
    kubeconfig_ = options.data_dir + "/kubeconfig";
    auto written = write_kubeconfigs(options.data_dir, url_, pki, !options.plain_http);
    if (written || ::access(kubeconfig_.c_str(), F_OK) != 0) return written;
    // A full disk: those that are there may still be good.
    base::log_warning("The kubeconfigs stay as they were", {{"error", written.error()}});
    return {};
}

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options) {
    std::unique_ptr<Server> out(new Server);
    TRY(base::make_private_directory(options.data_dir));
    warn_of_writers(options.data_dir);
    TRY(out->open_store(options));
    TRY(out->open_door(options));
    out->add_readings();
    if (!options.in_memory) out->watch_disk(options.data_dir);
    out->front_->set_ready(true);
    return out;
}

void Server::watch_disk(const std::string& dir) {
    disk_ = std::make_unique<DiskWatch>(*this, dir);
    front_->metrics().add_reading("berth_store_disk_free_bytes", "What is left on the disk of the store.", "gauge",
                                  [dir] { return disk_free_bytes(dir); });
}

void Server::add_readings() {
    auto& metrics = front_->metrics();
    add_process_metrics(metrics);
    add_http_metrics(metrics, "berth_http", http_->counters());
    metrics.add_reading("apiserver_current_inflight_requests", "Writes between arrival and answer.", "gauge",
                        [this] { return static_cast<double>(front_->writes_in_flight()); });
    metrics.add_reading("berth_answer_bytes", "Bytes that large answers hold while they are read.", "gauge",
                        [this] { return static_cast<double>(front_->answer_bytes()); });
    if (audit_) {
        metrics.add_reading("apiserver_audit_event_total", "Events that were to be written to the audit log.",
                            "counter", [this] { return static_cast<double>(audit_->told()); });
        metrics.add_reading("apiserver_audit_error_total", "Those of them that could not be written.", "counter",
                            [this] { return static_cast<double>(audit_->lost()); });
    }
    metrics.add_reading("berth_store_revision", "The newest durable revision.", "gauge",
                        [this] { return static_cast<double>(store_->revision()); });
    metrics.add_reading("berth_store_failed", "1: every write is refused, until the disk is mended and a restart.",
                        "gauge", [this] { return store_->failure() ? 1.0 : 0.0; });
}

// Streams and requests end first, then the store finishes what is pending; answers to it go nowhere.
Server::~Server() {
    disk_.reset();
    if (http_ != nullptr) http_->stop();
    store_.reset();
}

void Server::tick() {
    give_back_memory();
    if (disk_) disk_->look();
    const auto now = context_->clock.now();
    const bool flooded = store_->count("events") > api::kMostEvents + api::kMostEvents / 10;
    if (!flooded && now - last_expiry_ < std::chrono::minutes(1)) return;
    last_expiry_ = now;
    api::expire_events(*context_);
    store_->forget_aged();
}

}  // namespace berth::app
