#pragma once

struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace berth::base {

// What every door of ours has in common that speaks TLS (docs/operating/security.md): which versions, groups and
// suites. False: this OpenSSL lacks them.
bool harden_tls_server(ssl_ctx_st* context);

}  // namespace berth::base
