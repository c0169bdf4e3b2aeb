#pragma once

#include <cstddef>
#include <string>

namespace berth::store {

// A look at SQLite's write-ahead log without SQLite, which ends at the first frame that is not whole and says nothing
// about those behind it. A frame's checksum continues that of the frame before it, as it stands there; so each can be
// judged by itself.
struct WalScan {
    bool there = false;
    bool header = false;     // whole
    size_t frames = 0;       // whole, from the first on: what SQLite takes, up to the last that ends a transaction
    size_t good_behind = 0;  // whole ones of the same log behind the first that is not
    size_t ends_behind = 0;  // of these, those that end a transaction

    // "its write-ahead log ... ends with frame 11, and 328 good ones stand behind the next": the operator's clue.
    std::string describe(const std::string& path) const;
};

WalScan scan_wal(const std::string& path);

}  // namespace berth::store
