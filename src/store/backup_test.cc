#include "store/backup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "store/sqlite.h"
#include "store/sqlite_log.h"
#include "store/temp_dir.h"
#include "store/test_store.h"

namespace berth::store {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Store> open(const std::string& dir) {
    auto log = sqlite_log({.data_dir = dir});
    EXPECT_TRUE(log) << (log ? "" : log.error().message);
    return *Store::open(std::move(*log));
}

struct StoreBackup : testing::Test {
    TempDir temp;
    std::string data = temp.path() + "/data";
    std::string file = temp.path() + "/backup.db";
};

TEST_F(StoreBackup, ABackupOfALiveStoreIsWholeAndRestoresElsewhere) {
    auto store = open(data);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(store->commit(create(pod("p" + std::to_string(i)), "text")));
    const auto saved = back_up(data, file);
    ASSERT_TRUE(saved) << saved.error().message;
    EXPECT_EQ(saved->objects, 50u);
    EXPECT_EQ(saved->revision, 50u);
    ASSERT_TRUE(store->commit(create(pod("later"), "text")));
    EXPECT_EQ(fs::status(file).permissions() & fs::perms(0077), fs::perms::none);
    EXPECT_FALSE(back_up(data, file)) << "an existing file is not overwritten";

    const std::string other = temp.path() + "/other";
    const auto restored = restore(file, other, {});
    ASSERT_TRUE(restored) << restored.error().message;
    auto copy = open(other);
    EXPECT_EQ(copy->recovered().objects, 50u);
    EXPECT_FALSE(copy->get(pod("later")));
    EXPECT_EQ(copy->revision(), 50 + kRestoreLeap);
    EXPECT_EQ(copy->watch({"pods"}, 50).error().reason, Reason::Expired);
    EXPECT_EQ(copy->commit(create(pod("new"), "text"))->revision, 51 + kRestoreLeap);
}

TEST_F(StoreBackup, FilesThatABackupCarriesAreCheckedPutInPlaceAndLeaveNothingInTheStore) {
    const Companions keys{{"pki/ca.key", "a secret of some length"}, {"pki/issued/1.crt", ""}};
    ASSERT_TRUE(open(data)->commit(create(pod("a"), "one")));
    ASSERT_EQ(back_up(data, file, keys)->companions, 2u);
    EXPECT_EQ(check_file(file)->companions, 2u);
    Companions placed;
    const std::string other = temp.path() + "/other";
    const auto refuse = [](const Companions&) { return Status(base::internal("no")); };
    EXPECT_FALSE(restore(file, other, {.place = refuse}));
    EXPECT_FALSE(fs::exists(other + "/store.db"));
    const auto take = [&](const Companions& carried) {
        placed = carried;
        return Status();
    };
    ASSERT_TRUE(restore(file, other, {.place = take}));
    EXPECT_EQ(placed, keys);
    EXPECT_EQ(check_store(other)->companions, 0u);
    std::ifstream left(other + "/store.db");
    const std::string bytes(std::istreambuf_iterator<char>(left), {});
    EXPECT_EQ(bytes.find("a secret"), std::string::npos);
    EXPECT_TRUE(open(other)->get(pod("a")));
}

TEST_F(StoreBackup, AFileThatWasChangedInABackupOrLeadsElsewhereIsRefused) {
    ASSERT_TRUE(open(data)->commit(create(pod("a"), "one")));
    ASSERT_TRUE(back_up(data, file, {{"pki/ca.key", "secret"}}));
    {
        auto database = *Database::open(file, Database::Mode::Write);
        ASSERT_TRUE(database.execute("UPDATE companion SET bytes = 'other'"));
    }
    EXPECT_FALSE(check_file(file));
    EXPECT_FALSE(restore(file, temp.path() + "/other", {}));
    for (const std::string name : {"../evil", "/evil", "pki/../../evil", "pki//../x", ".", ""}) {
        const std::string odd = temp.path() + "/odd.db";
        fs::remove(odd);
        ASSERT_TRUE(back_up(data, odd)) << name;
        {
            auto database = *Database::open(odd, Database::Mode::Write);
            ASSERT_TRUE(put_companions(database, {{name, "text"}}));
        }
        EXPECT_FALSE(check_file(odd)) << name;
    }
}

TEST_F(StoreBackup, RestoreReplacesOnlyWithForceAndKeepsTheOldStore) {
    {
        auto store = open(data);
        ASSERT_TRUE(store->commit(create(pod("a"), "one")));
        ASSERT_TRUE(back_up(data, file));
        ASSERT_TRUE(store->commit(update(pod("a"), "two")));
        EXPECT_NE(restore(file, data, {.force = true}).error().message.find("in use"), std::string::npos);
    }
    EXPECT_NE(restore(file, data, {}).error().message.find("--force"), std::string::npos);
    ASSERT_TRUE(restore(file, data, {.force = true}));
    EXPECT_EQ(*open(data)->get(pod("a"))->bytes, "one");
    EXPECT_EQ(*open(data + "/replaced-1")->get(pod("a"))->bytes, "two");
}

TEST_F(StoreBackup, ADamagedStoreIsReplacedByItsBackup) {
    {
        auto store = open(data);
        ASSERT_TRUE(store->commit(create(pod("a"), "one")));
        ASSERT_TRUE(back_up(data, file));
    }
    ASSERT_TRUE(check_store(data));
    fs::remove(data + "/store.db-wal");
    fs::resize_file(data + "/store.db", 5000);
    EXPECT_NE(check_store(data).error().message.find("is damaged"), std::string::npos);
    EXPECT_FALSE(sqlite_log({.data_dir = data}));
    ASSERT_TRUE(restore(file, data, {.force = true}));
    EXPECT_EQ(*open(data)->get(pod("a"))->bytes, "one");
}

TEST_F(StoreBackup, AnInterruptedRestoreIsNoticedAndRepeated) {
    {
        ASSERT_TRUE(open(data)->commit(create(pod("a"), "one")));
    }
    ASSERT_TRUE(back_up(data, file));
    // As after a crash in the middle of the swap.
    {
        std::ofstream(data + "/store.restoring");
    }
    fs::remove(data + "/store.db");
    fs::remove(data + "/store.db-wal");
    EXPECT_NE(sqlite_log({.data_dir = data}).error().message.find("a restore into"), std::string::npos);
    ASSERT_TRUE(restore(file, data, {.force = true}));
    EXPECT_EQ(*open(data)->get(pod("a"))->bytes, "one");
}

TEST_F(StoreBackup, CheckFindsWhatChanged) {
    {
        ASSERT_TRUE(open(data)->commit(create(pod("a"), "one")));
    }
    ASSERT_TRUE(back_up(data, file));
    EXPECT_EQ(check_file(file)->rows, 1);
    {
        auto database = *Database::open(file, Database::Mode::Write);
        ASSERT_TRUE(database.execute("UPDATE log SET name = 'b'"));
    }
    EXPECT_NE(check_file(file).error().message.find("checksum"), std::string::npos);
    EXPECT_NE(restore(file, temp.path() + "/x", {}).error().message.find("is damaged"), std::string::npos);
    EXPECT_EQ(check_store(temp.path() + "/nowhere").error().reason, Reason::NotFound);
}

}  // namespace
}  // namespace berth::store
