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
    std::string tokens;  // the rows of the token file, see authn.h
};

// What D/pki holds, made where it is missing. The server's certificate is issued again when it does not name one of the
// hosts or ends within a month; the CA stays, so that kubeconfigs stay valid.
Result<Pki> open_pki(const std::string& directory, const std::vector<std::string>& hosts);

// A client certificate: CN = user, O = groups.
Result<KeyPair> issue_client(const KeyPair& ca, const std::string& user, const std::vector<std::string>& groups);

// A server's certificate with an authority of its own, both in memory only.
struct ServingCertificate {
    std::string ca_pem;
    KeyPair pair;
};
Result<ServingCertificate> issue_serving(const std::string& name, const std::vector<std::string>& hosts,
                                         std::chrono::seconds life);

// 32 random bytes as hex.
std::string random_token();
std::string sha256_hex(std::string_view text);

}  // namespace berth::api
