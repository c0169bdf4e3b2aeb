#pragma once

#include <map>
#include <string>
#include <vector>

#include "run/world.h"

namespace berth::cli {

// Why a pod or reservation is where it is, or is nowhere.
struct Explanation {
    struct Step {  // one filter, in the order in which they are asked
        std::string filter;
        size_t in = 0;
        size_t out = 0;
    };
    struct Block {  // a filter that refuses a node, also when another refused it before
        sched::PluginId filter;
        std::vector<std::string> reasons;
    };
    struct Near {  // nodes, and everything that would have to change on each of them
        std::vector<std::string> nodes;
        std::vector<std::string> changes;
    };
    struct Match {  // a reservation that the pod owns, or a pod that owns the reservation
        std::string name;
        std::string state;
    };

    bool is_reservation = false;
    std::string ns;
    std::string name;
    std::string state;    // "Pending", "Bound", "Gated"..., a reservation's phase
    std::string summary;  // one sentence
    std::string node;     // where it is, or where it would go now
    std::vector<Step> steps;
    std::map<std::string, std::vector<Block>> nodes;  // every node; without blocks it is feasible
    std::map<std::string, int64_t> scores;            // of the feasible ones
    std::vector<Near> nearest;                        // at most five groups of equal ones, those that lack least
    std::vector<std::string> victims;                 // whose eviction would open `node`
    std::vector<std::string> leaving;                 // that are on their way out of `node`, for this pod
    std::vector<Match> matches;
};

// What `berth whatif` says of the object, in a world that stands where its turn has come.
struct Foretold {
    size_t earlier = 0;      // others that are placed before it
    std::string from;        // the node that it has lost; empty: none
    std::string evicted_by;  // who takes its place; empty: nobody
    std::string error;       // why it is not even tried
    std::string message;     // why it has no place
};

// The world is asked, and is afterwards as it was: the answer is for this object alone, as if it were its turn now.
Result<Explanation> explain_pod(run::World& world, const std::string& ns, const std::string& name,
                                const Foretold* foretold = nullptr);
Result<Explanation> explain_reservation(run::World& world, const std::string& name, const Foretold* foretold = nullptr);

Json explanation_document(const Explanation& explanation);
std::string explanation_text(const Explanation& explanation);

}  // namespace berth::cli
