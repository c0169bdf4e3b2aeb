#pragma once

#include "link/iri_grpc.h"

namespace berth::link {

struct IriKeys {
    std::string certificate;  // PEM
    std::string key;
    std::string ca;
    bool given() const { return !ca.empty(); }
};
// Empty ones where the clear may be used.
Result<IriKeys> read_iri_keys(const std::string& address, const IriAddress& where, const IriTls& tls);

inline constexpr int kMostMessageBytes = 4 << 20;
inline constexpr int kKeepAliveMillis = 10'000;

}  // namespace berth::link
