#include "store/garbage.h"

#include "store/log_row.h"

namespace berth::store {

void Garbage::add(Row row) {
    bytes_ += row.bytes;
    rows_.push_back(row);
}

void Garbage::add(const Record& by, bool deleted, const Record* previous) {
    if (previous) add({row_id(*previous), by.revision, previous->bytes->size()});
    if (deleted) add({row_id(by), by.revision, 0});
}

bool Garbage::over(double times) const {
    return static_cast<double>(rows_.size()) > times * static_cast<double>(keep_.rows) ||
           static_cast<double>(bytes_) > times * static_cast<double>(keep_.bytes);
}

Garbage::Chunk Garbage::take(size_t max) {
    Chunk chunk;
    while (chunk.ids.size() < max && over(1.0)) {
        chunk.ids.push_back(rows_.front().id);
        chunk.floor = rows_.front().by;
        bytes_ -= rows_.front().bytes;
        rows_.pop_front();
    }
    taking_ = over(1.0);
    return chunk;
}

}  // namespace berth::store
