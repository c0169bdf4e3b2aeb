#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

// The few words of SQLite that the log needs, with Result for its codes and destructors for its handles.
namespace berth::store {

class Statement {
public:
    Statement() = default;
    explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

    // Text is not copied: it must live until step() has returned false or reset() was called.
    Statement& bind(int index, int64_t value);
    Statement& bind(int index, std::string_view text);
    Statement& bind_null(int index);
    // True: a row is there. False: done, and the statement is ready to run again.
    Result<bool> step();
    // step() until done.
    Status run();
    void reset();

    int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
    // Valid until the next step().
    std::string_view text(int column) const;
    bool is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

private:
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    };
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// A connection. One thread at a time.
class Database {
public:
    enum class Mode { Read, Write, Create };
    // `vfs`: SQLite's name of a file system, "" for the default one.
    static Result<Database> open(const std::string& path, Mode mode, const std::string& vfs = "");

    Status execute(const std::string& sql);
    Result<Statement> prepare(std::string_view sql);
    // The first column of the first row; 0 when there is none.
    Result<int64_t> number(std::string_view sql);
    Result<std::string> text(std::string_view sql);
    sqlite3* handle() { return handle_.get(); }

private:
    struct Close {
        void operator()(sqlite3* handle) const { sqlite3_close(handle); }
    };
    std::unique_ptr<sqlite3, Close> handle_;
};

// A sentence about the last failure on this connection. Damage (not a database, malformed, checksum) has the reason
// Invalid, everything else InternalError.
Error sqlite_error(sqlite3* handle, int code);

}  // namespace berth::store
