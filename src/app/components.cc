#include "app/components.h"

namespace berth::app {

Result<std::vector<std::unique_ptr<Component>>> start_components(Server&, const UpOptions&) {
    return std::vector<std::unique_ptr<Component>>{};
}

}  // namespace berth::app
