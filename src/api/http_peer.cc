#include <openssl/ssl.h>

#include "api/http_exchange.h"
#include "api/x509.h"

namespace berth::api {

std::shared_ptr<const PeerCertificate> peer_of(SSL* ssl) {
    X509* certificate = SSL_get1_peer_certificate(ssl);
    if (certificate == nullptr) return nullptr;
    auto peer = std::make_shared<const PeerCertificate>(read_certificate(certificate));
    X509_free(certificate);
    return peer;
}

}  // namespace berth::api
