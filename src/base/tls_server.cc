#include "base/tls_server.h"

#include <openssl/ssl.h>

namespace berth::base {
namespace {

// What a hello may make us compute: the client chooses the group, and one of the finite-field ones costs a thousand
// times as much as a curve (ffdhe8192 152 ms).
constexpr const char* kGroups = "X25519:P-256:P-384";
// Forward secrecy and authenticated encryption only: no CBC. TLS 1.3's own suites are all of that kind.
constexpr const char* kTls12Suites = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!PSK";

}  // namespace

// Sessions are never resumed: a resumed one would skip the check of the client's certificate.
bool harden_tls_server(ssl_ctx_st* context) {
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    return SSL_CTX_set1_groups_list(context, kGroups) == 1 && SSL_CTX_set_cipher_list(context, kTls12Suites) == 1;
}

}  // namespace berth::base
