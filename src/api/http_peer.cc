#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "api/http_exchange.h"

namespace berth::api {
namespace {

std::vector<std::string> names_in(X509_NAME* subject, int nid) {
    std::vector<std::string> out;
    for (int at = X509_NAME_get_index_by_NID(subject, nid, -1); at >= 0;
         at = X509_NAME_get_index_by_NID(subject, nid, at)) {
        unsigned char* utf8 = nullptr;
        const int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
        if (size >= 0) out.emplace_back(reinterpret_cast<char*>(utf8), static_cast<size_t>(size));
        OPENSSL_free(utf8);
    }
    return out;
}

}  // namespace

std::shared_ptr<const PeerCertificate> peer_of(SSL* ssl) {
    X509* certificate = SSL_get1_peer_certificate(ssl);
    if (certificate == nullptr) return nullptr;
    X509_NAME* subject = X509_get_subject_name(certificate);
    auto peer = std::make_shared<PeerCertificate>();
    auto names = names_in(subject, NID_commonName);
    if (!names.empty()) peer->common_name = std::move(names.front());
    peer->organizations = names_in(subject, NID_organizationName);
    X509_free(certificate);
    return peer;
}

}  // namespace berth::api
