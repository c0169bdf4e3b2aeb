#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/random.h"
#include "store/backup.h"
#include "store/data_dir.h"
#include "store/fault_vfs.h"
#include "store/sqlite_log.h"
#include "store/temp_dir.h"
#include "store/test_store.h"
#include "store/wal_scan.h"

// Damage to the files of a store: acknowledged writes are there, or the start is refused; never less in silence.
namespace berth::store {
namespace {

namespace fs = std::filesystem;

using Contents = std::map<std::string, std::string>;

Contents contents(const Store& store) {
    Contents found{{"revision", std::to_string(store.revision())}};
    const Page page = *store.list({.kind = "pods"});
    for (const auto& record : page.records) found[to_text(record->key)] = *record->bytes;
    return found;
}

Result<std::unique_ptr<Store>> try_open(const std::string& dir, const std::string& vfs = "") {
    auto log = TRY(sqlite_log({.data_dir = dir, .tuning = {.wal_bytes = 0, .vfs = vfs}}));
    return Store::open(std::move(log));
}

std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

// What a killed server leaves: 200 acknowledged writes, all of them in the write-ahead log.
struct StoreDamage : testing::Test {
    TempDir temp{TempDir::Where::Memory};
    DataDir killed{temp.path() + "/killed"};
    DataDir copy{temp.path() + "/copy"};
    Contents written;

    void SetUp() override {
        const DataDir live{temp.path() + "/live"};
        auto store = *try_open(live.path);
        for (int i = 0; i < 160; ++i) ASSERT_TRUE(store->commit(create(pod(fmt::format("p{}", i)), "text")));
        for (int i = 0; i < 40; ++i) ASSERT_TRUE(store->commit(remove(pod(fmt::format("p{}", i * 3)))));
        fs::create_directory(killed.path);
        for (const auto& [from, to] : {std::pair{live.file(), killed.file()}, std::pair{live.wal(), killed.wal()},
                                       std::pair{live.acknowledged(), killed.acknowledged()}}) {
            fs::copy_file(from, to);
        }
        written = contents(*store);
        ASSERT_EQ(written.at("revision"), "200");
        again();
    }
    // A fresh copy of the killed store.
    void again() {
        fs::remove_all(copy.path);
        fs::copy(killed.path, copy.path);
    }
    // Start and check refuse, say why and what to do, and change nothing.
    void expect_refusal(const std::string& because) {
        const std::string before = read(copy.file()) + read(copy.wal()) + read(copy.acknowledged());
        const auto opened = try_open(copy.path);
        ASSERT_FALSE(opened) << because;
        EXPECT_NE(opened.error().message.find(because), std::string::npos) << opened.error().message;
        EXPECT_NE(opened.error().message.find("berth store restore"), std::string::npos) << opened.error().message;
        const auto checked = check_store(copy.path);
        ASSERT_FALSE(checked) << because;
        EXPECT_NE(checked.error().message.find(because), std::string::npos) << checked.error().message;
        EXPECT_FALSE(back_up(copy.path, temp.path() + "/backup.db")) << "half a store is no backup";
        EXPECT_EQ(read(copy.file()) + read(copy.wal()) + read(copy.acknowledged()), before);
    }
    void expect_all() {
        const auto opened = try_open(copy.path);
        ASSERT_TRUE(opened) << opened.error().message;
        EXPECT_EQ(contents(**opened), written);
    }
};

TEST_F(StoreDamage, AWholeStoreOpens) {
    const WalScan wal = scan_wal(copy.wal());
    EXPECT_GT(wal.frames, 200u);
    EXPECT_EQ(wal.good_behind, 0u);
    expect_all();
    EXPECT_EQ(check_store(copy.path)->objects, 120u);
}

// BERTH_FLIPS=10000 for a longer look.
TEST_F(StoreDamage, NoFlippedBitOfTheLogIsSilent) {
    const uint64_t seed = base::seed_from_system() % 1'000'000'000;
    fmt::print("seed {}\n", seed);
    base::Random random(seed);
    const char* asked = std::getenv("BERTH_FLIPS");
    const int flips = asked ? std::atoi(asked) : 300;
    const std::string whole = read(killed.wal());
    int refused = 0;
    for (int i = 0; i < flips; ++i) {
        again();
        std::string flipped = whole;
        // Every tenth in the header of the file or of a frame.
        const size_t frame = 32 + random.below((whole.size() - 32) / 4120) * 4120;
        const size_t at = i % 20 == 0    ? random.below(32)
                          : i % 20 == 10 ? frame + random.below(24)
                                         : random.below(whole.size());
        const uint64_t bit = random.below(8);
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
        write(copy.wal(), flipped);
        SCOPED_TRACE(fmt::format("seed {}, byte {}, bit {}", seed, at, bit));
        const auto opened = try_open(copy.path);
        if (opened) {
            ASSERT_EQ(contents(**opened), written);
        } else {
            ASSERT_NE(opened.error().message.find("has lost acknowledged writes"), std::string::npos)
                << opened.error().message;
            ++refused;
        }
    }
    fmt::print("{} bits flipped, {} refused, {} harmless, none silent\n", flips, refused, flips - refused);
    EXPECT_GT(refused, flips / 2);
}

TEST_F(StoreDamage, ABadFrameWithGoodOnesBehindItIsNamed) {
    std::string wal = read(copy.wal());
    wal[32 + 11 * 4120 + 100] ^= 1;
    write(copy.wal(), wal);
    const WalScan scan = scan_wal(copy.wal());
    EXPECT_EQ(scan.frames, 11u);
    EXPECT_GT(scan.good_behind, 150u);
    expect_refusal("ends with frame 11, the next is damaged and " + std::to_string(scan.good_behind) + " good ones");
}

TEST_F(StoreDamage, ALostOrEmptiedLogIsNoticed) {
    fs::remove(copy.wal());
    expect_refusal("revision 200 was acknowledged and it ends with 0");
    again();
    fs::resize_file(copy.wal(), fs::file_size(copy.wal()) / 2);
    expect_refusal("revision 200 was acknowledged and it ends with ");
    again();
    fs::remove(copy.wal());
    fs::remove(copy.file());
    EXPECT_NE(try_open(copy.path).error().message.find("revision 200 was acknowledged"), std::string::npos);
}

TEST_F(StoreDamage, ALogThatWasAllMovedMayGo) {
    expect_all();  // closing moves it
    fs::remove(copy.wal());
    expect_all();
}

TEST_F(StoreDamage, AnOlderCopyOfTheFileIsNoticed) {
    const std::string older = read(killed.file());
    expect_all();
    fs::remove(copy.wal());
    write(copy.file(), older);
    expect_refusal("revision 200 was acknowledged and it ends with 0");
}

TEST_F(StoreDamage, WithoutTheNoteNobodyKnows) {
    fs::remove(copy.acknowledged());
    expect_refusal("there is no " + copy.acknowledged());
    again();
    const std::string note = read(copy.acknowledged());
    std::string torn = note;
    torn[3] ^= 4;
    write(copy.acknowledged(), torn);
    expect_all();  // the other slot says enough
    again();
    torn[4099] ^= 4;
    write(copy.acknowledged(), torn);
    expect_refusal("cannot be read");
    again();
    fs::resize_file(copy.acknowledged(), 7);
    expect_refusal("cannot be read");
}

TEST_F(StoreDamage, RepairGoesOnWithWhatIsLeftAndGivesNoRevisionAgain) {
    EXPECT_NE(repair(copy.path, {.accept_loss = true}).error().message.find("nothing to repair"), std::string::npos);
    std::string wal = read(copy.wal());
    wal[wal.size() / 2] ^= 1;
    write(copy.wal(), wal);
    const auto told = repair(copy.path, {});
    EXPECT_NE(told.error().message.find("What is left: "), std::string::npos) << told.error().message;
    expect_refusal("revision 200 was acknowledged");
    const auto repaired = repair(copy.path, {.accept_loss = true});
    ASSERT_TRUE(repaired) << repaired.error().message;
    EXPECT_GT(repaired->objects, 10u);
    auto store = *try_open(copy.path);
    EXPECT_EQ(store->revision(), 200 + kRestoreLeap);
    EXPECT_EQ(store->count("pods"), repaired->objects);
    EXPECT_EQ(store->commit(create(pod("new"), "text"))->revision, 201 + kRestoreLeap);
    EXPECT_EQ(read(copy.path + "/replaced-1/store.db-wal"), wal);
}

TEST_F(StoreDamage, ARestoreGivesNoRevisionAgain) {
    ASSERT_TRUE(back_up(copy.path, temp.path() + "/backup.db"));
    ASSERT_TRUE(restore(temp.path() + "/backup.db", copy.path, {.force = true}));
    const Revision given = (*try_open(copy.path))->commit(create(pod("new"), "text"))->revision;
    ASSERT_TRUE(restore(temp.path() + "/backup.db", copy.path, {.force = true}));
    EXPECT_GT((*try_open(copy.path))->commit(create(pod("new"), "text"))->revision, given);
}

// Whoever writes into files that have lost their names writes for nobody.
TEST_F(StoreDamage, WritesAfterTheFilesWereRemovedAreNotAcknowledged) {
    const auto removals = std::array<std::function<void()>, 5>{
        [&] { fs::remove_all(copy.path); }, [&] { fs::remove(copy.wal()); }, [&] { fs::remove(copy.file()); },
        [&] { fs::rename(copy.path, copy.path + ".moved"); },
        [&] {
            fs::rename(copy.file(), copy.file() + ".old");
            fs::copy_file(copy.file() + ".old", copy.file());
        }};
    for (const auto& removal : removals) {
        again();
        auto store = *try_open(copy.path);
        ASSERT_TRUE(store->commit(create(pod("before"), "text")));
        removal();
        const auto after = store->commit(create(pod("after"), "text"));
        ASSERT_FALSE(after);
        EXPECT_NE(after.error().message.find("was removed or replaced"), std::string::npos) << after.error().message;
        EXPECT_FALSE(store->commit(create(pod("later"), "text")));
        EXPECT_TRUE(store->get(pod("before"))) << "reads go on";
        EXPECT_FALSE(store->get(pod("after")));
        fs::remove_all(copy.path + ".moved");
    }
}

// As on a full disk: nothing can be written at the start, at any place, and what is there is served.
TEST_F(StoreDamage, AFullDiskServesReads) {
    int served = 0;
    for (int64_t n = 1;; ++n) {
        SCOPED_TRACE(fmt::format("full from operation {} on", n));
        again();
        FaultVfs vfs("full");
        vfs.fail_from(n, FaultVfs::Fault::Full);
        auto opened = try_open(copy.path, "full");
        ASSERT_TRUE(opened) << opened.error().message;
        EXPECT_EQ(contents(**opened), written);
        if (!(*opened)->failure()) break;
        EXPECT_FALSE((*opened)->commit(create(pod("new"), "text")));
        EXPECT_EQ(contents(**opened), written);
        ++served;
    }
    EXPECT_GT(served, 0);
    expect_all();
}

}  // namespace
}  // namespace berth::store
