#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/http.h"

// The generated certificates of an embedded server, kept in a directory over restarts.
namespace berth::api {

struct KeyPair {
    std::string certificate_pem;
    std::string key_pem;
};

struct Pki {
    std::string ca_pem;
    KeyPair server;
    KeyPair admin;
    KeyPair scheduler;
    std::string admin_token;
};

// What D/pki holds, made where it is missing. The server's certificate is issued again when it does not name one of the
// hosts or ends within a month; the CA stays, so that kubeconfigs stay valid.
Result<Pki> open_pki(const std::string& directory, const std::vector<std::string>& hosts, base::Time now);

// A client certificate of the directory's authority, CN = user, O = groups, good for `days`. Its copy without the key
// stays in D/pki/issued; it is valid from behind every revocation of the user.
Result<KeyPair> issue_client(const std::string& directory, const std::string& user,
                             const std::vector<std::string>& groups, int days, base::Time now);

// The client certificates that the directory knows of: its own and those that were issued.
struct Issued {
    std::string file;  // "admin.crt", "issued/SERIAL.crt"
    PeerCertificate says;
};
Result<std::vector<Issued>> client_certificates(const std::string& directory);

// The pair NAME.crt, NAME.key made anew for the same subject, and what it was before.
struct Renewed {
    KeyPair before;
    KeyPair now;
};
Result<Renewed> renew_client(const std::string& directory, const std::string& name, base::Time now);

// A server's certificate with an authority of its own, both in memory only.
struct ServingCertificate {
    std::string ca_pem;
    KeyPair pair;
};
Result<ServingCertificate> issue_serving(const std::string& name, const std::vector<std::string>& hosts,
                                         std::chrono::seconds life, base::Time now);

// 32 random bytes as hex.
std::string random_token();
std::string sha256_hex(std::string_view text);

}  // namespace berth::api
