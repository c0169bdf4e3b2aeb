#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/component.h"
#include "app/server.h"
#include "base/json.h"
#include "model/hold.h"

namespace berth::app {

// A layer of pools, or a provider: what `berth up --fleet` was told.
struct FleetSpec {
    std::string name;
    model::Amounts capacity;          // of a provider
    std::vector<FleetSpec> children;  // of a layer
    bool provider() const { return children.empty(); }
};

// Absent: nothing was asked for.
Result<std::optional<FleetSpec>> read_fleet(const std::string& text);

// A whole tree in this process: for each layer a server and a scheduler, for each pool a poollet, below it a broker or
// a provider.
class Fleet {
public:
    // Below the root's server; what layers keep lies in its data directory.
    static Result<std::unique_ptr<Fleet>> start(Server& root, const FleetSpec& spec, const ServerOptions& options);
    ~Fleet();
    Fleet(const Fleet&) = delete;
    Fleet& operator=(const Fleet&) = delete;

    // Chores of the layers' servers.
    void tick();

private:
    Fleet() = default;
    Status add_layer(Server& server, const FleetSpec& layer, const ServerOptions& options);
    Status add_pool(Server& above, const FleetSpec& pool, const ServerOptions& options);

    std::vector<std::unique_ptr<Server>> servers_;
    std::vector<std::unique_ptr<Component>> components_;  // from the top down
};

}  // namespace berth::app
