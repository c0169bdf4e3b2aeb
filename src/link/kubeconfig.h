#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "link/exec_plugin.h"
#include "link/proxy.h"

namespace berth::link {

// Which server, and as whom. Empty: the files of $KUBECONFIG, then the service account of a pod, then ~/.kube/config.
struct AccessOptions {
    std::string kubeconfig = {};
    std::string context = {};  // empty: the current-context; named, a service account is not meant
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
    std::optional<Proxy> proxy = {};
    std::string certificate_pem;
    std::string key_pem;
    std::string token;
    std::optional<ExecPlugin> exec = {};  // who says the three above: see fresh_access.h
    std::string ns = "default";
    bool operator==(const Access&) const = default;

    std::string authority() const;  // host:port
    std::string url() const;
    // A proxy makes a connection for us. Else it reads our requests, which then name the whole URL, or there is none.
    bool tunnelled() const { return proxy && (tls || proxy->kind == Proxy::Kind::Socks5); }
};

// Reads files, and runs nothing. Several files of $KUBECONFIG count as kubectl merges them: of each name the first
// entry alone, the current-context of the first that has one; paths begin at the file that says them; files that are
// not there are left out. Auth providers, passwords and impersonation are refused with a sentence: silently leaving one
// out would be another identity than the one that was asked for.
Result<Access> read_access(const AccessOptions& options);

}  // namespace berth::link
