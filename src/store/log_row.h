#pragma once

#include <cstdint>
#include <string_view>

#include "store/record.h"

namespace berth::store {

// A change as the file keeps it. `object` is null for a deletion.
struct LogRow {
    int64_t id = 0;
    std::string_view kind;
    std::string_view ns;
    std::string_view name;
    std::string_view uid;
    int64_t created = 0;
    const std::string_view* object = nullptr;
};

// id = revision * 65536 + part: rows in the order of revisions, found again from the record alone. Revisions therefore
// end at 2^47.
inline int64_t row_id(Revision revision, uint16_t part) {
    return static_cast<int64_t>(revision << 16 | part);
}
inline int64_t row_id(const Record& record) {
    return row_id(record.revision, record.part);
}
inline Revision revision_of(int64_t id) {
    return static_cast<uint64_t>(id) >> 16;
}
inline uint16_t part_of(int64_t id) {
    return static_cast<uint16_t>(id & 0xffff);
}

// XXH3 over every field, with lengths, so that no byte can move from one to the next unseen.
int64_t checksum(const LogRow&);

}  // namespace berth::store
