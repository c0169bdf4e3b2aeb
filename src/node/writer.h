#pragma once

#include <sys/types.h>

#include <memory>

#include "node/tree.h"

namespace berth::node {

// A tree whose writes are done by a process of its own, which can do nothing else: it gets orders of a fixed size over
// a socket, looks at each as at a stranger's, and ends when this process does. What is read is read here. To be called
// before there are threads.
Result<std::unique_ptr<Tree>> split_tree(std::unique_ptr<Tree> tree);

// The same process's part, for tests: answers orders until the other end closes.
void serve_orders(int socket, Tree& tree);

}  // namespace berth::node
