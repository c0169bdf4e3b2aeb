#pragma once

#include <memory>
#include <string>

#include "api/api_context.h"
#include "api/audit.h"
#include "api/front.h"
#include "api/http.h"
#include "run/bind_guard.h"
#include "store/data_dir.h"
#include "store/store.h"

namespace berth::app {

struct ServerOptions {
    std::string data_dir = "./berth-data";
    std::string listen = "127.0.0.1:6443";
    bool in_memory = false;
    bool plain_http = false;  // loopback only; tokens instead of certificates
    int threads = 2;
    std::string scheduler_config = {};  // a file; what it ignores is not judged
    std::string audit_log = {};         // empty: in the data directory, unless in memory; kNoAuditLog: nowhere
    int64_t audit_max_mib = 100;
    int audit_backups = 10;
    bool fleet = false;  // the kinds of layered pools, too
    store::HistoryLimits history = {};
    api::Surroundings here = {};
};
inline constexpr std::string_view kNoAuditLog = "none";

class DiskWatch;

// The API server with its store, as one part of a process. Start, use, destroy.
class Server {
public:
    // Opens the store, makes certificates and the first objects, writes the kubeconfigs, listens.
    static Result<std::unique_ptr<Server>> start(const ServerOptions& options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    store::Store& store() { return *store_; }
    // The door for components in this process: front().call(), with an identity of api/identity.h.
    api::Front& front() { return *front_; }
    api::ApiContext& context() { return *context_; }
    const std::string& url() const { return url_; }
    const std::string& kubeconfig() const { return kubeconfig_; }
    const std::string& ca_certificate() const { return ca_certificate_; }

    // Chores; once a second from the main thread.
    void tick();

private:
    Server() = default;
    Status open_store(const ServerOptions& options);
    Status open_door(const ServerOptions& options);
    void add_readings();
    void watch_disk(const std::string& dir);

    std::unique_ptr<store::DirLock> lock_;   // in memory: of the certificates and kubeconfigs
    std::unique_ptr<api::AuditLog> audit_;   // outlives what still tells it something
    std::unique_ptr<run::BindGuard> guard_;  // outlives the store, which calls it
    std::unique_ptr<store::Store> store_;
    std::unique_ptr<api::ApiContext> context_;
    std::unique_ptr<api::Front> front_;
    std::unique_ptr<api::HttpServer> http_;
    std::unique_ptr<DiskWatch> disk_;  // of a store on a disk
    std::string url_;
    std::string kubeconfig_;
    std::string ca_certificate_;
    base::Instant last_expiry_{};
};

// Raises the limit of open files to what the system allows: every watch is a connection.
void raise_file_limit();
// Blocks SIGINT and SIGTERM in this thread and those it starts; call before any thread exists.
void block_stop_signals();
// Waits until one of them comes, calling `chores` now and then.
void wait_for_stop(const std::function<void()>& chores, base::Duration every = std::chrono::seconds(1));
// The same; the chores come first, and say how long nothing is to do after them.
void rest_until_stop(const std::function<base::Duration()>& chores);

}  // namespace berth::app
