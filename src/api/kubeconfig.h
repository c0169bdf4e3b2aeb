#pragma once

#include <string>

namespace berth::api {

struct KubeconfigUser {
    std::string name;
    std::string certificate_pem;
    std::string key_pem;
};

// A kubeconfig with everything embedded: the server's address, its CA and the user's client certificate. Without TLS
// (ca_pem empty), or without a certificate, the token is used instead.
std::string kubeconfig_text(const std::string& server_url, const std::string& ca_pem, const KubeconfigUser& user,
                            const std::string& token);

}  // namespace berth::api
