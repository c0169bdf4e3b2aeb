#pragma once

#include <map>
#include <string>

#include "store/sqlite.h"

// Files that a backup carries beside the objects, each with its checksum, in a table of the backup's own.
namespace berth::store {

// By the name that each has in the data directory, e.g. pki/ca.key.
using Companions = std::map<std::string, std::string>;

Status put_companions(Database&, const Companions&);
// None where there is no such table; Invalid when one is not what was written.
Result<Companions> read_companions(Database&);
// So that nothing of them is left in the file.
Status erase_companions(Database&);

}  // namespace berth::store
