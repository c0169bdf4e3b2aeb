#pragma once

#include <map>
#include <set>
#include <string>

#include "model/meta.h"
#include "model/write.h"

// The Consumers that people need not write: one for every namespace, as long as it is there.
namespace berth::control {

inline constexpr const char* kConsumerResource = "kuabe-arbitrator.incubator.k8s.io/consumers";
inline constexpr const char* kAllocationResource = "kuabe-arbitrator.incubator.k8s.io/allocations";

// A namespace that has none gets one that guarantees and limits nothing. All of them belong to their namespace, whoever
// wrote them, and go with it; areas belong to nobody.
model::Writes keep_consumers(const std::map<std::string, model::Meta>& namespaces,
                             const std::map<std::string, model::Meta>& consumers);

}  // namespace berth::control
