#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "node/plan.h"

namespace berth::node {

struct Eviction {
    size_t pod = 0;  // in Situation::pods
    std::string because;
};

// Which best-effort pods shall go, in this order: lower priority first, then lower sub-priority, then larger use, then
// name. For memory: the node is above its threshold, and they go until it would be below the lower one. For cpu: what
// BE pods may use is below the lower percentage of what they ask, they use most of it, and both for as long as
// `starved` says; then as many as would bring it to the upper one.
std::vector<Eviction> evictions(const Situation& situation, const Plan& plan, base::Duration starved);

// Whether cpu is so short for them now.
bool is_starved(const Situation& situation, const Plan& plan);

}  // namespace berth::node
