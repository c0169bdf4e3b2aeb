#include "api/kubeconfig.h"

#include <fmt/format.h>

#include "api/base64.h"

namespace berth::api {
std::string kubeconfig_text(const std::string& server_url, const std::string& ca_pem, const KubeconfigUser& user,
                            const std::string& token) {
    const bool tls = !ca_pem.empty();
    std::string out = "apiVersion: v1\nkind: Config\ncurrent-context: berth\nclusters:\n- name: berth\n  cluster:\n";
    out += fmt::format("    server: {}\n", server_url);
    if (tls) out += fmt::format("    certificate-authority-data: {}\n", base64_encode(ca_pem));
    out += fmt::format(
        "contexts:\n- name: berth\n  context:\n    cluster: berth\n    user: {}\nusers:\n- name: {}\n  user:\n",
        user.name, user.name);
    if (!tls || user.certificate_pem.empty()) return out + fmt::format("    token: {}\n", token);
    out += fmt::format("    client-certificate-data: {}\n", base64_encode(user.certificate_pem));
    out += fmt::format("    client-key-data: {}\n", base64_encode(user.key_pem));
    return out;
}

}  // namespace berth::api
