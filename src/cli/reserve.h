#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace berth::cli {

// What `berth reserve` was asked for.
struct ReserveFlags {
    std::string name;
    std::vector<std::string> resources;     // cpu=4, memory=8Gi, nvidia.com/gpu=1
    std::vector<std::string> owner_labels;  // key=value, all of one owner
    std::string owner_pod;                  // namespace/name
    std::string owner_controller;           // Kind/namespace/name
    std::vector<std::string> labels;
    std::vector<std::string> node_selector;
    std::string node;
    std::string ttl;
    std::string expires;
    std::string policy;
    bool reusable = false;
    bool pre_allocation = false;
    int count = 1;
};

// The reservations, named NAME, or NAME-0, NAME-1... for a count, or NAME-NODE for each of the nodes.
Result<std::vector<Json>> reservations_for(const ReserveFlags& flags, const std::vector<std::string>& nodes);

// berth reserve [create] NAME -r cpu=4 --owner app=web [...], berth reserve list|extend|release [...]
int reserve(std::vector<std::string> words);

}  // namespace berth::cli
