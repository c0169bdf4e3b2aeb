#pragma once

#include "link/iri_grpc.h"

namespace berth::link {

struct IriKeys {
    std::string certificate;  // PEM
    std::string key;
    std::string ca;
    std::vector<std::string> clients;  // as of IriTls
    bool given() const { return !ca.empty(); }
};
// Empty ones where the clear may be used.
Result<IriKeys> read_iri_keys(const std::string& address, const IriAddress& where, const IriTls& tls);

// gRPC 1.51 waits for ever for threads of its own that it could not make: whoever may have too few is told so before.
Status threads_for_grpc();

inline constexpr int kMostMessageBytes = 4 << 20;
inline constexpr int kKeepAliveMillis = 10'000;

}  // namespace berth::link
