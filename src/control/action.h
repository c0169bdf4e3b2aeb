#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace berth::control {

// One write that a reconciler wants, as a value. Whoever carries it out reports back by the next events.
struct Action {
    enum class Verb : uint8_t { Create, Replace, MergePatch, Delete };
    Verb verb = Verb::Create;
    std::string resource;  // "pods", "apps/replicasets"
    std::string version = "v1";
    std::string ns;
    std::string name;         // empty for Create
    std::string subresource;  // "status", "finalize"
    Json body;                // Delete: DeleteOptions with its preconditions
    std::string text = {};    // the body of those that are made for every pod; where it is empty, `body` counts
};

using Actions = std::vector<Action>;

// Deletes exactly this object (not a later one of its name), in the background.
Action delete_object(std::string resource, const std::string& ns, const std::string& name, const std::string& uid);
// Merges `status` into the object's status, if it is still the same object.
Action patch_status(std::string resource, const std::string& ns, const std::string& name, const std::string& uid,
                    JsonObject status);

}  // namespace berth::control
