#include "api/x509.h"

#include <openssl/bn.h>

#include <ctime>
#include <memory>

namespace berth::api {
namespace {

std::vector<std::string> names_in(const X509_NAME* subject, int nid) {
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

std::string serial_of(const X509* certificate) {
    BIGNUM* number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
    char* hex = BN_bn2hex(number);
    std::string out = hex != nullptr ? hex : "";
    OPENSSL_free(hex);
    BN_free(number);
    return out;
}

base::Time time_of(const ASN1_TIME* time) {
    std::tm parts{};
    if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
    return base::Time{} + std::chrono::seconds(::timegm(&parts));
}

}  // namespace

PeerCertificate read_certificate(const X509* certificate) {
    PeerCertificate out;
    const X509_NAME* subject = X509_get_subject_name(certificate);
    auto names = names_in(subject, NID_commonName);
    if (!names.empty()) out.common_name = std::move(names.front());
    out.organizations = names_in(subject, NID_organizationName);
    out.serial = serial_of(certificate);
    out.not_before = time_of(X509_get0_notBefore(certificate));
    out.not_after = time_of(X509_get0_notAfter(certificate));
    return out;
}

}  // namespace berth::api
