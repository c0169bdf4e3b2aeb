#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>

#include "model/node.h"

namespace berth::ledger {

// Which container images lie on how many nodes, and how large they are.
class Images {
public:
    struct Entry {
        int64_t size = 0;  // as the first node that had it said
        uint32_t nodes = 0;
    };
    void add(const model::Node& node);
    void remove(const model::Node& node);
    const Entry* find(const std::string& name) const;
    bool empty() const { return entries_.empty(); }

private:
    absl::flat_hash_map<std::string, Entry> entries_;
};

}  // namespace berth::ledger
