#include "store/sqlite_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/random.h"
#include "store/backup.h"
#include "store/sqlite.h"
#include "store/temp_dir.h"
#include "store/test_store.h"

namespace berth::store {
namespace {

namespace fs = std::filesystem;

Result<std::unique_ptr<Store>> try_open(const std::string& dir, KeepLimits keep = {}) {
    auto log = TRY(sqlite_log({.data_dir = dir, .keep = keep}));
    return Store::open(std::move(log));
}

std::unique_ptr<Store> open(const std::string& dir, KeepLimits keep = {}) {
    auto store = try_open(dir, keep);
    EXPECT_TRUE(store) << (store ? "" : store.error().message);
    return std::move(*store);
}

void run_sql(const std::string& dir, const std::string& sql) {
    auto database = *Database::open(dir + "/store.db", Database::Mode::Write);
    const auto done = database.execute(sql);
    ASSERT_TRUE(done) << done.error().message;
}

int64_t ask_sql(const std::string& dir, const std::string& sql) {
    auto database = *Database::open(dir + "/store.db", Database::Mode::Read);
    return *database.number(sql);
}

TEST(SqliteLog, KeepsObjectsRevisionAndHistoryAcrossRestarts) {
    TempDir dir;
    {
        auto store = open(dir.path());
        ASSERT_TRUE(store->commit(create(pod("a"), "one")));
        ASSERT_TRUE(store->commit(create({"nodes", "", "n"}, "node")));
        ASSERT_TRUE(store->commit(update(pod("a"), std::string("nul \0 inside", 12))));
        Txn both{{create(pod("b"), "").writes[0], remove({"nodes", "", "n"}).writes[0]}};
        ASSERT_TRUE(store->commit(both));
        EXPECT_EQ(store->commit(remove(pod("b")))->revision, 5u);
    }
    auto store = open(dir.path());
    EXPECT_EQ(store->recovered().objects, 1u);
    EXPECT_EQ(store->revision(), 5u);
    const auto a = store->get(pod("a"));
    EXPECT_EQ(*a->bytes, std::string("nul \0 inside", 12));
    EXPECT_EQ(a->uid, "uid-a");
    EXPECT_EQ(a->created, 1u);
    EXPECT_EQ(a->revision, 3u);
    const auto watch = *store->watch({"nodes"}, 1);
    const auto events = *watch->poll(10);
    ASSERT_EQ(events.size(), 2u);
    EXPECT_EQ(*events[1]->record->bytes, "node");
    EXPECT_EQ(events[1]->record->revision, 4u);
    EXPECT_EQ(store->commit(create(pod("c"), "x"))->revision, 6u);
}

// A commit waits for as many as came with the last one; a lone writer after a crowd must not wait for ever.
TEST(SqliteLog, ALoneWriteAfterManyIsNotKeptWaiting) {
    TempDir dir;
    auto store = open(dir.path());
    std::atomic<int> done = 0;
    for (int i = 0; i < 500; ++i) {
        store->submit(create(pod(fmt::format("many-{}", i)), "{}"), [&](const Result<Commit>& result) {
            EXPECT_TRUE(result);
            ++done;
        });
    }
    ASSERT_TRUE(store->commit(create(pod("lone"), "{}")));
    EXPECT_EQ(done, 500);
    ASSERT_TRUE(store->commit(create(pod("lone-too"), "{}")));
    EXPECT_EQ(store->count("pods"), 502U);
}

TEST(SqliteLog, FilesAreForTheirOwnerOnly) {
    TempDir dir;
    const std::string data = dir.path() + "/new/data";
    auto store = open(data);
    ASSERT_TRUE(store->commit(create(pod("a"), "one")));
    for (const auto& entry : fs::directory_iterator(data)) {
        EXPECT_EQ(entry.status().permissions() & fs::perms(0077), fs::perms::none) << entry.path();
    }
    EXPECT_EQ(fs::status(data).permissions() & fs::perms(0077), fs::perms::none);
}

TEST(SqliteLog, ASecondProcessIsRefused) {
    TempDir dir;
    auto store = open(dir.path());
    auto second = try_open(dir.path());
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("in use by process " + std::to_string(getpid())), std::string::npos)
        << second.error().message;
    store.reset();
    EXPECT_TRUE(try_open(dir.path()));
}

TEST(SqliteLog, CompactsSupersededRowsAndKeepsTheRest) {
    TempDir dir;
    {
        auto store = open(dir.path(), {.rows = 10});
        ASSERT_TRUE(store->commit(create(pod("still"), "here")));
        for (int round = 0; round < 50; ++round) {
            const std::string text = std::to_string(round);
            ASSERT_TRUE(store->commit(create(pod("comes and goes"), text)));
            ASSERT_TRUE(store->commit(update(pod("comes and goes"), text + text)));
            ASSERT_TRUE(store->commit(remove(pod("comes and goes"))));
        }
    }
    EXPECT_LE(ask_sql(dir.path(), "SELECT count(*) FROM log"), 1 + 20 + 3);
    auto store = open(dir.path(), {.rows = 10});
    EXPECT_EQ(store->revision(), 151u);
    EXPECT_EQ(store->recovered().objects, 1u);
    EXPECT_EQ(store->watch({"pods"}, 100).error().reason, Reason::Expired);
    const auto watch = *store->watch({"pods"}, 149);
    EXPECT_EQ(watch->poll(10)->size(), 2u);
    ASSERT_TRUE(store->commit(remove(pod("still"))));
}

void expect_refusal(const std::string& dir, const std::string& because) {
    auto store = try_open(dir);
    ASSERT_FALSE(store) << because;
    EXPECT_NE(store.error().message.find(because), std::string::npos) << store.error().message;
    EXPECT_NE(store.error().message.find("berth store restore"), std::string::npos) << store.error().message;
}

TEST(SqliteLog, DamageIsRefusedWithASentence) {
    TempDir dir;
    {
        auto store = open(dir.path());
        for (int i = 0; i < 100; ++i) ASSERT_TRUE(store->commit(create(pod("p" + std::to_string(i)), "text")));
    }
    const auto copy = [&](const char* name) {
        fs::copy(dir.path(), dir.path() + "/../" + fs::path(dir.path()).filename().string() + name);
        return dir.path() + name;
    };
    const std::string changed = copy(".changed");
    run_sql(changed, "UPDATE log SET object = 'tex7' WHERE name = 'p42'");
    expect_refusal(changed, "the checksum of row");

    const std::string lost = copy(".lost");
    run_sql(lost, "DELETE FROM log WHERE name = 'p42'");
    expect_refusal(lost, "should have 100 rows and has 99");

    const std::string emptied = copy(".emptied");
    fs::resize_file(emptied + "/store.db", 0);
    expect_refusal(emptied, "is empty");

    const std::string cut = copy(".cut");
    fs::remove(cut + "/store.db-wal");
    fs::resize_file(cut + "/store.db", 4096 * 2);
    expect_refusal(cut, "malformed");

    const std::string missing = copy(".missing");
    fs::remove(missing + "/store.db");
    expect_refusal(missing, "its write-ahead log");

    const std::string noise = copy(".noise");
    fs::remove(noise + "/store.db-wal");
    std::ofstream(noise + "/store.db") << std::string(8192, 'x');
    expect_refusal(noise, "not a database");

    const std::string foreign = copy(".foreign");
    run_sql(foreign, "PRAGMA application_id = 1");
    expect_refusal(foreign, "not a store of Berth");
    for (const auto& each : {changed, lost, emptied, cut, missing, noise, foreign}) fs::remove_all(each);
}

// What is read is what was written, or nothing is read.
TEST(SqliteLog, NoFlippedByteGoesUnnoticed) {
    const uint64_t seed = base::seed_from_system() % 1'000'000'000;
    fmt::print("seed {}\n", seed);
    base::Random random(seed);
    const TempDir dir(TempDir::Where::Memory);
    const FileTuning tuning{.wal_bytes = 0};
    const auto contents = [&](Store& store) {
        std::map<std::string, std::string> found{{"revision", std::to_string(store.revision())}};
        const Page page = *store.list({.kind = "pods"});
        for (const auto& record : page.records) found[to_text(record->key)] = *record->bytes;
        return found;
    };
    std::map<std::string, std::string> written;
    {
        auto store = *Store::open(*sqlite_log({.data_dir = dir.path(), .keep = {.rows = 10}, .tuning = tuning}));
        for (int i = 0; i < 120; ++i) {
            ASSERT_TRUE(store->commit(create(pod("p" + std::to_string(i)), std::string(random.below(900), 'x'))));
            if (i % 3 != 0) continue;
            ASSERT_TRUE(store->commit(remove(pod("p" + std::to_string(i)))));
        }
        written = contents(*store);
    }
    fs::remove(dir.path() + "/store.db-wal");
    std::ifstream in(dir.path() + "/store.db", std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    size_t refused = 0;
    for (int round = 0; round < 300; ++round) {
        const TempDir copy(TempDir::Where::Memory);
        std::string flipped = whole;
        // Every third in the header and the first pages, where there is most to go wrong.
        const size_t at = random.below(round % 3 == 0 ? 12'288 : whole.size());
        flipped[at] = static_cast<char>(flipped[at] ^ (1 + random.below(255)));
        std::ofstream(copy.path() + "/store.db", std::ios::binary) << flipped;
        fs::copy_file(dir.path() + "/store.acknowledged", copy.path() + "/store.acknowledged");
        auto log = sqlite_log({.data_dir = copy.path(), .tuning = tuning});
        if (!log) {
            ++refused;
            continue;
        }
        auto store = Store::open(std::move(*log));
        if (store) {
            ASSERT_EQ(contents(**store), written) << "seed " << seed << ", byte " << at;
        } else {
            ++refused;
        }
    }
    EXPECT_GT(refused, 50u) << "most of the file is in use";
}

TEST(SqliteLog, ANewerFormatIsRefusedAndAnOlderOneUpgraded) {
    TempDir dir;
    {
        auto store = open(dir.path());
        for (int i = 0; i < 10; ++i) ASSERT_TRUE(store->commit(create(pod("p" + std::to_string(i)), "text")));
        ASSERT_TRUE(store->commit(remove(pod("p9"))));
    }
    run_sql(dir.path(), "PRAGMA user_version = 4");
    auto newer = try_open(dir.path());
    ASSERT_FALSE(newer);
    EXPECT_NE(newer.error().message.find("written by a newer Berth"), std::string::npos) << newer.error().message;

    run_sql(dir.path(),
            "ALTER TABLE state DROP COLUMN rows; ALTER TABLE state DROP COLUMN sum; PRAGMA user_version = 1");
    fs::remove(dir.path() + "/store.acknowledged");
    EXPECT_EQ(check_store(dir.path())->objects, 9u) << "looking does not need an upgrade";
    {
        auto store = open(dir.path());
        EXPECT_EQ(store->recovered().objects, 9u);
        EXPECT_EQ(store->revision(), 11u);
        ASSERT_TRUE(store->commit(create(pod("p10"), "text")));
    }
    EXPECT_EQ(ask_sql(dir.path(), "PRAGMA user_version"), 3);
    EXPECT_EQ(ask_sql(dir.path(), "SELECT rows FROM state"), 12);
    EXPECT_EQ(open(dir.path())->recovered().objects, 10u);
}

}  // namespace
}  // namespace berth::store
