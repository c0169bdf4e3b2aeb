#pragma once

#include "app/components.h"

namespace berth::app {

// What is there from the beginning: the nodes, what --import brings (once), a storage class, the classes of priority
// that Koordinator installs.
Status create_first_objects(Server& server, const UpOptions& options);

}  // namespace berth::app
