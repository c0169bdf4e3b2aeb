#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "store/record.h"

struct sqlite3_file;

namespace berth::store {

// The newest acknowledged revision, in a small file outside SQLite's: a store that ends before it has lost something.
//
// Two slots of {revision, checksum}, a page apart, are written in turns: a torn write leaves the other one, which is
// one acknowledgement older. What stands here is never newer than what was acknowledged.
class Acknowledged {
public:
    // A new file in its place, safe when this returns.
    static Status make(const std::string& path, Revision);
    // NotFound when there is no file, Invalid when no slot is whole.
    static Result<Revision> read(const std::string& path);
    // For writing, through SQLite's file system of that name. Errors as read's.
    static Result<std::unique_ptr<Acknowledged>> open(const std::string& path, const std::string& vfs);
    ~Acknowledged();
    Acknowledged(const Acknowledged&) = delete;
    Acknowledged& operator=(const Acknowledged&) = delete;

    Revision revision() const { return revision_; }
    // Outlives the process at once, and the machine after sync().
    Status write(Revision);
    Status sync();

private:
    explicit Acknowledged(std::string path) : path_(std::move(path)) {}

    std::string path_;
    std::unique_ptr<char[]> memory_;  // of file_, whose size the file system names
    sqlite3_file* file_ = nullptr;
    Revision revision_ = 0;
    int next_ = 0;  // the slot that holds the older one
};

}  // namespace berth::store
