#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::cli {

// What somebody wrote in documents and nothing is made of: misspelt members, an object that a later one of its name
// replaces, kinds that nobody knows. An API server would refuse or warn; a file has nobody else who says it.
class InputCheck {
public:
    void see(const Json& object);
    // One sentence for each member and each name, whichever objects have it.
    std::vector<std::string> remarks() const;

private:
    struct Seen {
        std::string first;  // "Pod default/web"
        size_t times = 0;
    };
    std::map<std::string, Seen> unknown_;    // by kind and path, with [] for any place of a list
    std::map<std::string, size_t> objects_;  // by "Pod default/web"
};

// A kind that means nothing where these do: 'objects of kind "Pods" are ignored: did you mean Pod?'
std::string ignored_kind(const Json& object, const std::vector<std::string>& known);

}  // namespace berth::cli
