#include "store/sqlite.h"

#include <fmt/format.h>

namespace berth::store {

Error sqlite_error(sqlite3* handle, int code) {
    const char* said = handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
    const int extended = handle ? sqlite3_extended_errcode(handle) : code;
    const int primary = code & 0xff;
    std::string message = fmt::format("{} (SQLite code {})", said, extended);
    const bool damaged = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
    return {damaged ? Reason::Invalid : Reason::InternalError, std::move(message)};
}

Statement& Statement::bind(int index, int64_t value) {
    CHECK(sqlite3_bind_int64(statement_.get(), index, value) == SQLITE_OK);
    return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
    // A null pointer would bind NULL.
    const char* data = text.data() ? text.data() : "";
    CHECK(sqlite3_bind_text64(statement_.get(), index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK);
    return *this;
}

Statement& Statement::bind_null(int index) {
    CHECK(sqlite3_bind_null(statement_.get(), index) == SQLITE_OK);
    return *this;
}

Result<bool> Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) {
        reset();
        return false;
    }
    Error error = sqlite_error(sqlite3_db_handle(statement_.get()), code);
    reset();
    return error;
}

Status Statement::run() {
    while (TRY(step())) {
    }
    return {};
}

void Statement::reset() {
    sqlite3_reset(statement_.get());
}

std::string_view Statement::text(int column) const {
    // As a blob: asking for text would copy it to add a final zero.
    const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
    const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
    return data ? std::string_view(data, size) : std::string_view();
}

Result<Database> Database::open(const std::string& path, Mode mode, const std::string& vfs) {
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    flags |= mode == Mode::Read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    if (mode == Mode::Create) flags |= SQLITE_OPEN_CREATE;
    sqlite3* handle = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &handle, flags, vfs.empty() ? nullptr : vfs.c_str());
    Database database;
    database.handle_.reset(handle);
    if (code != SQLITE_OK) return sqlite_error(handle, code);
    sqlite3_busy_timeout(handle, 5000);
    return database;
}

Status Database::execute(const std::string& sql) {
    const int code = sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return sqlite_error(handle(), code);
    return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(handle(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
    if (code != SQLITE_OK) return sqlite_error(handle(), code);
    return Statement(statement);
}

Result<int64_t> Database::number(std::string_view sql) {
    auto statement = TRY(prepare(sql));
    return TRY(statement.step()) ? statement.integer(0) : 0;
}

Result<std::string> Database::text(std::string_view sql) {
    auto statement = TRY(prepare(sql));
    return TRY(statement.step()) ? std::string(statement.text(0)) : std::string();
}

}  // namespace berth::store
