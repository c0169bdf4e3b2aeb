#include "run/sqlite_journal.h"

#include <fmt/format.h>

#include "store/data_dir.h"
#include "store/sqlite.h"

namespace berth::run {
namespace {

class SqliteJournal final : public FleetJournal {
public:
    SqliteJournal(std::unique_ptr<store::DirLock> lock, store::Database database)
        : lock_(std::move(lock)), database_(std::move(database)) {}

    Result<std::vector<LedgerRow>> read() override {
        std::vector<LedgerRow> out;
        auto select = TRY(database_.prepare("SELECT lineage, hold, machine, fence FROM ledger"));
        while (TRY(select.step())) {
            out.push_back({std::string(select.text(0)), std::string(select.text(1)), std::string(select.text(2)),
                           std::string(select.text(3))});
        }
        return out;
    }

    Status write(const std::vector<LedgerRow>& rows) override {
        TRY(database_.execute("BEGIN IMMEDIATE"));
        auto written = put(rows);
        if (!written) {
            (void)database_.execute("ROLLBACK");
            return written;
        }
        return database_.execute("COMMIT");
    }

private:
    Status put(const std::vector<LedgerRow>& rows) {
        auto replace =
            TRY(database_.prepare("REPLACE INTO ledger (lineage, hold, machine, fence) VALUES (?, ?, ?, ?)"));
        auto remove = TRY(database_.prepare("DELETE FROM ledger WHERE lineage = ?"));
        for (const auto& row : rows) {
            const bool nothing = row.hold.empty() && row.machine.empty() && row.fence.empty();
            if (nothing) {
                TRY(remove.bind(1, row.lineage).run());
            } else {
                TRY(replace.bind(1, row.lineage).bind(2, row.hold).bind(3, row.machine).bind(4, row.fence).run());
            }
        }
        return {};
    }

    const std::unique_ptr<store::DirLock> lock_;
    store::Database database_;
};

}  // namespace

namespace {

Result<OpenedJournal> open_ledger(std::unique_ptr<store::DirLock> lock, const std::string& file,
                                  const std::string& fresh_epoch) {
    auto database = TRY(store::Database::open(file, store::Database::Mode::Create));
    TRY(database.execute("PRAGMA journal_mode = WAL"));
    TRY(database.execute("PRAGMA synchronous = FULL"));
    TRY(
        database.execute("CREATE TABLE IF NOT EXISTS ledger (lineage TEXT PRIMARY KEY, hold TEXT NOT NULL, "
                         "machine TEXT NOT NULL, fence TEXT NOT NULL) WITHOUT ROWID"));
    TRY(database.execute("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)"));
    {
        auto insert = TRY(database.prepare("INSERT OR IGNORE INTO facts (name, value) VALUES ('epoch', ?)"));
        TRY(insert.bind(1, fresh_epoch).run());
    }
    const auto epoch = TRY(database.text("SELECT value FROM facts WHERE name = 'epoch'"));
    OpenedJournal out;
    out.epoch = epoch;
    out.journal = std::make_unique<SqliteJournal>(std::move(lock), std::move(database));
    return out;
}

}  // namespace

Result<OpenedJournal> open_fleet_journal(const std::string& dir, const std::string& fresh_epoch) {
    auto lock = TRY(store::DirLock::take({dir}));
    const std::string file = dir + "/ledger.db";
    auto opened = open_ledger(std::move(lock), file, fresh_epoch);
    if (opened) return opened;
    Error trouble = opened.error();
    trouble.message = fmt::format("{}: {}", file, trouble.message);
    return trouble;
}

}  // namespace berth::run
