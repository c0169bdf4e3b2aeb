#pragma once

#include <openssl/x509.h>

#include <string>
#include <vector>

// Who of those that an authority has signed may ask: one authority signs for many pools, a runtime answers one.
namespace berth::link {

// The URI and DNS names of a certificate's subjectAltName; where it has neither, its common name.
std::vector<std::string> names_of(const X509* certificate);

// Empty where one of its names is wanted, or any will do; else a sentence for the log.
std::string why_not(const X509* certificate, const std::vector<std::string>& wanted);

// HTTP/2 for who is refused: the settings that a client waits for, and the answer to a call.
std::string no_settings();
std::string refused_call(uint32_t stream);

}  // namespace berth::link
