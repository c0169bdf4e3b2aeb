#pragma once

#include "app/components.h"

namespace berth::app {

// What is there from the beginning: the nodes, what --import brings (once), a storage class.
Status create_first_objects(Server& server, const UpOptions& options);

}  // namespace berth::app
