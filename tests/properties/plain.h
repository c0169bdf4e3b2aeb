#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "model/node.h"
#include "model/pod.h"

namespace berth::properties {

// A slow, obvious evaluation of one pod over a whole cluster, straight from the documented rules of kube-scheduler's
// default profile. It shares no code with the ledger and the scheduler; it counts everything anew each time.
class PlainCluster {
public:
    struct Placed {
        std::shared_ptr<const model::PodSpec> spec;
        std::string node;
    };
    // Where the pod could go, with the weighted total, and which of them is best.
    struct Answer {
        std::map<std::string, int64_t> feasible;
        std::string chosen;
    };

    Answer evaluate(const model::PodSpec& spec) const;

    std::map<std::string, model::Node> nodes;
    std::map<std::string, Placed> pods;  // by uid

private:
    struct Sums {
        std::map<std::string, int64_t> used;  // by resource name
        int64_t scored_cpu = 0;
        int64_t scored_memory = 0;
        std::vector<model::HostPort> ports;
    };
    std::map<std::string, Sums> sums() const;
    bool fits(const model::PodSpec& spec, const model::Node& node, const Sums& sums) const;
    int64_t image_points(const model::PodSpec& spec, const model::Node& node) const;
};

}  // namespace berth::properties
