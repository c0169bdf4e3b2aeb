#pragma once

#include <openssl/x509.h>

#include "api/http.h"

namespace berth::api {

// What a certificate says.
PeerCertificate read_certificate(const X509* certificate);

}  // namespace berth::api
