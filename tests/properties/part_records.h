#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"

// The judges' own reading of what is recorded of cores and devices: it shares nothing with the readers of src.
namespace berth::properties {

using Ids = std::set<int>;
Ids ids_of(const std::string& text);     // "0-2,5"
Ids cpus_in(const std::string& record);  // {"cpuset":"0-3",...}
// cpu by NUMA node: {...,"numaNodeResources":[{"node":0,"resources":{"cpu":"1500m"}}]}
std::map<int, int64_t> milli_in(const std::string& record);

// "core", "ratio", "memory" of a gpu; "core" alone of others.
using Use = std::map<std::string, int64_t>;
struct Share {
    Use use;
    std::vector<std::string> functions;
};
using CardKey = std::pair<std::string, int>;  // type and number
using Shares = std::map<CardKey, Share>;
Shares shares_in(const Json& record);

struct Card {
    Use has;
    std::set<std::string> functions;
    std::string pcie;
};
using Cards = std::map<CardKey, Card>;

}  // namespace berth::properties
