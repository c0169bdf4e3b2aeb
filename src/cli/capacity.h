#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "run/world.h"

// How much more there is room for, and how many nodes would have to be added.
namespace berth::cli {

struct Fit {
    int64_t count = 0;
    bool all = false;  // as many as were asked for: there may be room for more
    std::map<std::string, int64_t> by_node;
    std::string why;  // what the first one was told that did not fit
};
// How many more of this pod fit beside what is there, if nobody has to go: each is decided about as if it had just been
// created.
Result<Fit> fit(run::World& world, const Json& pod, int64_t most);

// A node to be added: what it has, and its labels. It has 110 pods unless it says otherwise.
Result<Json> node_of_shape(const std::vector<std::string>& shape, const std::vector<std::string>& labels,
                           int64_t number);

// A cluster with so many nodes more, settled.
struct Trial {
    std::unique_ptr<run::World> world;
    std::vector<run::Placement> answers;
    int64_t wanted = 0;   // objects that should have a place
    int64_t refused = 0;  // of these
};
struct Need {
    int64_t nodes = 0;
    bool enough = false;  // else not even a node for each of them helps
    Trial trial;          // with so many
};
// With so many nodes everything that is wanted has a place, and with one less it has not.
Result<Need> need(const std::function<Result<Trial>(int64_t nodes)>& make);

}  // namespace berth::cli
