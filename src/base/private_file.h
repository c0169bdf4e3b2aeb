#pragma once

#include <string>

#include "base/result.h"

namespace berth::base {

// Of a file that holds a key or a token: refused when others than its owner may read or write it; the sentence says
// what to do. A file of root's may be read by its group, as those of systemd and of a pod's volumes are; what lies
// below /run/secrets is a container's own. Nothing is said of a file that is not there, or is no file (a pipe).
Status check_private(const std::string& path);
// Of a file that names a program which we run: refused when others than its owner may change it.
Status check_unwritable(const std::string& path);

// Makes a directory that is missing, for its owner alone, and those above it. One that is there stays as it is.
Status make_private_directory(const std::string& path);

}  // namespace berth::base
