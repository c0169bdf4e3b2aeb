#include "store/log_format.h"

#include <fmt/format.h>

#include <array>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace berth::store {
namespace {

constexpr int64_t kApplication = 0x42727468;  // "Brth"

// Format 1 had no count and no sum of its rows.
Status add_tally(Database& database) {
    TRY(
        database.execute("ALTER TABLE state ADD COLUMN rows INTEGER NOT NULL DEFAULT 0;"
                         "ALTER TABLE state ADD COLUMN sum INTEGER NOT NULL DEFAULT 0"));
    auto sums = TRY(database.prepare("SELECT sum FROM log"));
    Tally tally;
    while (TRY(sums.step())) tally.add(sums.integer(0));
    const auto last = static_cast<uint64_t>(TRY(database.number("SELECT last FROM state")));
    const auto floor = static_cast<uint64_t>(TRY(database.number("SELECT floor FROM state")));
    auto set = TRY(database.prepare("UPDATE state SET rows = ?, sum = ?"));
    set.bind(1, tally.rows).bind(2, static_cast<int64_t>(tally.sum + checksum_of_state(last, floor, tally.rows)));
    return set.run();
}

// From format 3 on the file of acknowledged.h must be there; whoever upgrades makes it first.
Status require_acknowledged(Database&) {
    return {};
}

// kUpgrades[n] brings format n + 1 to n + 2.
constexpr std::array<Status (*)(Database&), kFormat - 1> kUpgrades{add_tally, require_acknowledged};

}  // namespace

uint64_t checksum_of_state(uint64_t last, uint64_t floor, int64_t rows) {
    const std::string numbers = fmt::format("{} {} {}", last, floor, rows);
    return XXH3_64bits(numbers.data(), numbers.size());
}

Status make_tables(Database& database) {
    return database.execute(fmt::format(
        "BEGIN;"
        "PRAGMA application_id = {};"
        "PRAGMA user_version = {};"
        "CREATE TABLE log (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,"
        " uid TEXT NOT NULL, created INTEGER NOT NULL, object TEXT, sum INTEGER NOT NULL);"
        "CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), last INTEGER NOT NULL, floor INTEGER NOT NULL,"
        " rows INTEGER NOT NULL, sum INTEGER NOT NULL);"
        "INSERT INTO state VALUES (1, 0, 0, 0, {});"
        "COMMIT",
        kApplication, kFormat, static_cast<int64_t>(checksum_of_state(0, 0, 0))));
}

Status recognise(Database& database, const std::string& path) {
    if (TRY(database.number("PRAGMA application_id")) != kApplication) {
        return base::invalid("it is a SQLite database but not a store of Berth");
    }
    const int64_t format = TRY(database.number("PRAGMA user_version"));
    if (format > kFormat) {
        return base::conflict(fmt::format(
            "{} has format {} and this program knows formats up to {}: it was written by a newer Berth, use that one",
            path, format, kFormat));
    }
    if (TRY(database.text("PRAGMA encoding")) != "UTF-8") return base::invalid("its text is not UTF-8");
    if (format < 1) return base::invalid(fmt::format("its format is {}, which never existed", format));
    return {};
}

Status upgrade(Database& database) {
    const int64_t format = TRY(database.number("PRAGMA user_version"));
    if (format == kFormat) return {};
    TRY(database.execute("BEGIN IMMEDIATE"));
    for (int64_t from = format; from < kFormat; ++from) TRY(kUpgrades[static_cast<size_t>(from - 1)](database));
    return database.execute(fmt::format("PRAGMA user_version = {}; COMMIT", kFormat));
}

}  // namespace berth::store
