#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace berth::link {

// Which server, and as whom. Empty: $KUBECONFIG, then the service account of a pod, then ~/.kube/config.
struct AccessOptions {
    std::string kubeconfig = {};
    std::string context = {};  // empty: the file's current-context
    std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// Everything a connection needs, as it is now; files that a kubeconfig names have been read.
struct Access {
    bool tls = true;
    std::string host;
    std::string port;
    std::string path;         // in front of every request's path; no slash at its end
    std::string server_name;  // what the server's certificate must name
    std::string ca_pem;       // empty: the system's authorities
    bool skip_verify = false;
    std::string certificate_pem;
    std::string key_pem;
    std::string token;
    std::string ns = "default";
    bool operator==(const Access&) const = default;

    std::string authority() const;  // host:port
    std::string url() const;
};

// Exec plugins, auth providers, proxies, passwords and impersonation are refused with a sentence: silently leaving one
// out would be another identity than the one that was asked for.
Result<Access> read_access(const AccessOptions& options);

// The same, read again every ten seconds, so that rotated tokens and certificates take effect. While the files cannot
// be read, what they held before stays. One thread.
class FreshAccess {
public:
    static Result<FreshAccess> open(AccessOptions options, base::Instant now);
    // What is given stays.
    explicit FreshAccess(Access access) : access_(std::move(access)), fixed_(true) {}

    const Access& get(base::Instant now);
    // Reads at once; true when something changed.
    bool refresh(base::Instant now);

private:
    FreshAccess(AccessOptions options, Access access, base::Instant now)
        : options_(std::move(options)), access_(std::move(access)), read_at_(now) {}

    AccessOptions options_;
    Access access_;
    base::Instant read_at_;
    bool fixed_ = false;
};

}  // namespace berth::link
