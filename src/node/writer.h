#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "node/descriptor.h"
#include "node/tree.h"

namespace berth::node {

// A tree whose writes are done by a process of its own, which can do nothing else: it gets orders of a fixed size over
// a socket, looks at each as at a stranger's, and ends when this process does. What is read is read here, but for the
// files that it was told of when it began: those it opens to be read, for a process that may not.
class SplitTree : public Tree {
public:
    virtual Result<Descriptor> open_file(size_t which) = 0;
};

// To be called before there are threads.
Result<std::unique_ptr<SplitTree>> split_tree(std::unique_ptr<Tree> tree, std::vector<std::string> files = {});

// A file to be read, which is one: no folder, no pipe. Links are followed, as the administrator has set them.
Result<Descriptor> open_plain_file(const std::string& path);

// The same process's part, for tests: answers orders until the other end closes.
void serve_orders(int socket, Tree& tree, const std::vector<std::string>& files = {});

}  // namespace berth::node
