#pragma once

#include <cstdint>
#include <string>

#include "store/sqlite.h"

// The tables of a store's file, and their versions.
//
//   log    one row for each change, append-only; superseded rows are deleted later. `object` is NULL for a deletion.
//   state  one row. last: the newest revision ever given. floor: see Log::Extent. rows, sum: how many rows `log` has
//   and
//          the sum of their checksums modulo 2^64, so that a lost row is noticed.
//
// SQLite's application_id says that it is a store, user_version which format.
namespace berth::store {

inline constexpr int64_t kFormat = 3;

// Which formats have `rows` and `sum`, and which say in a file beside them what was acknowledged.
constexpr bool tallied(int64_t format) {
    return format >= 2;
}
constexpr bool notes_acknowledged(int64_t format) {
    return format >= 3;
}

// Makes the tables in an empty database.
Status make_tables(Database&);

// Refuses what is no store or is of a newer format.
Status recognise(Database&, const std::string& path);

// Brings an older format to kFormat, in one transaction.
Status upgrade(Database&);

// last, floor and rows of the state row, as they enter its sum.
uint64_t checksum_of_state(uint64_t last, uint64_t floor, int64_t rows);

struct Tally {
    int64_t rows = 0;
    uint64_t sum = 0;
    void add(int64_t checksum) {
        ++rows;
        sum += static_cast<uint64_t>(checksum);
    }
    void remove(int64_t checksum) {
        --rows;
        sum -= static_cast<uint64_t>(checksum);
    }
    bool operator==(const Tally&) const = default;
};

}  // namespace berth::store
