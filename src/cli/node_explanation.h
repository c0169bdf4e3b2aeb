#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "ledger/ledger.h"

namespace berth::cli {

// Where a node's capacity is.
struct NodeExplanation {
    // allocatable - outside = pods + sum over reservations of max(reserved, drawn) + free.
    // E.g. 16 - 4 outside = 5 (pods) + 4 (of which 1 is drawn, 3 idle) + 3 free.
    struct Amounts {
        model::ResourceId resource;
        int64_t allocatable = 0;  // as the kubelet reports it
        int64_t outside = 0;      // kept for processes outside Kubernetes
        int64_t pods = 0;         // requested, less what is drawn from reservations
        int64_t reserved = 0;
        int64_t drawn = 0;
        int64_t idle = 0;
        int64_t free = 0;
    };
    struct Pod {
        std::string name;  // namespace/name
        std::string requests;
        std::string draws;  // "cpu=1 from r1"; empty: nothing
        bool leaving = false;
    };
    struct Held {
        std::string name;
        std::string phase;
        std::string reserved, drawn, idle;
        std::string owners;
    };

    std::string name;
    std::string state;  // one sentence
    std::vector<Amounts> amounts;
    std::vector<Pod> pods;
    std::vector<Held> reservations;
};

Result<NodeExplanation> explain_node(const ledger::View& ledger, const std::string& name);

Json node_document(const NodeExplanation& node);
std::string node_text(const NodeExplanation& node);

}  // namespace berth::cli
