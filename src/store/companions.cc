#include "store/companions.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "store/log_row.h"

namespace berth::store {
namespace {

int64_t checksum_of(std::string_view name, std::string_view bytes) {
    LogRow row;
    row.name = name;
    row.object = &bytes;
    return checksum(row);
}

// A backup may come from anybody: no name leads out of the directory.
bool stays_inside(const std::filesystem::path& name) {
    const auto odd = [](const auto& part) { return part == ".." || part == "." || part.empty(); };
    return !name.empty() && name.is_relative() && std::none_of(name.begin(), name.end(), odd);
}

Result<bool> has_table(Database& database) {
    return TRY(database.number("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'companion'")) > 0;
}

}  // namespace

Status put_companions(Database& database, const Companions& all) {
    TRY(database.execute(
        "BEGIN; CREATE TABLE companion (name TEXT PRIMARY KEY, bytes TEXT NOT NULL, sum INTEGER NOT NULL)"));
    auto insert = TRY(database.prepare("INSERT INTO companion VALUES (?, ?, ?)"));
    for (const auto& [name, bytes] : all) {
        TRY(insert.bind(1, name).bind(2, bytes).bind(3, checksum_of(name, bytes)).run());
    }
    return database.execute("COMMIT");
}

Result<Companions> read_companions(Database& database) {
    Companions out;
    if (!TRY(has_table(database))) return out;
    auto rows = TRY(database.prepare("SELECT name, bytes, sum FROM companion"));
    while (TRY(rows.step())) {
        const auto name = rows.text(0), bytes = rows.text(1);
        if (checksum_of(name, bytes) != rows.integer(2)) {
            return base::invalid(fmt::format("its copy of the file {} is not what was written", name));
        }
        if (!stays_inside(name)) return base::invalid(fmt::format("it has a file with the odd name {}", name));
        out.emplace(name, bytes);
    }
    return out;
}

Status erase_companions(Database& database) {
    if (!TRY(has_table(database))) return {};
    return database.execute("DROP TABLE companion; VACUUM");
}

}  // namespace berth::store
