#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "store/fault_vfs.h"
#include "store/sqlite_log.h"
#include "store/temp_dir.h"
#include "store/test_store.h"

// Failing disks: every write and every fsync fails once, and the power goes at every one of them.
namespace berth::store {
namespace {

constexpr int kSteps = 14;

// Step n writes n into two objects (all or none shows), and makes or deletes a third.
Txn step(int n) {
    const std::string text = std::to_string(n) + std::string(700, '.');
    const Op op = n == 1 ? Op::Create : Op::Update;
    Txn txn{{{.op = op, .key = pod("left"), .bytes = bytes(text), .uid = "u"},
             {.op = op, .key = pod("right"), .bytes = bytes(text), .uid = "u"}}};
    txn.writes.push_back(n % 2 == 1 ? create(pod("odd"), text).writes[0] : remove(pod("odd")).writes[0]);
    return txn;
}

// What the store must hold when all steps up to n are in it.
void expect_step(const Store& store, int n) {
    ASSERT_EQ(store.revision(), static_cast<Revision>(n));
    ASSERT_EQ(store.count("pods"), n == 0 ? 0u : n % 2 == 1 ? 3u : 2u);
    if (n == 0) return;
    const std::string text = std::to_string(n) + std::string(700, '.');
    ASSERT_EQ(*store.get(pod("left"))->bytes, text);
    ASSERT_EQ(*store.get(pod("right"))->bytes, text);
}

// Small, so that checkpoints and compaction happen between a dozen steps.
SqliteOptions small(const std::string& dir, const std::string& vfs) {
    return {.data_dir = dir, .keep = {.rows = 3}, .tuning = {.checkpoint_pages = 9, .wal_bytes = 40'000, .vfs = vfs}};
}

// The last step that was acknowledged. Nothing may be acknowledged after a failure.
int run_steps(const SqliteOptions& options, const std::function<void(int)>& acknowledged = [](int) {}) {
    auto log = sqlite_log(options);
    if (!log) return 0;
    auto store = Store::open(std::move(*log));
    if (!store) return 0;
    int last = 0;
    bool failed = false;
    for (int n = 1; n <= kSteps; ++n) {
        std::promise<bool> answer;
        (*store)->submit(step(n), [&](Result<Commit> result) {
            if (result) acknowledged(n);
            answer.set_value(result.ok());
        });
        const bool done = answer.get_future().get();
        EXPECT_FALSE(done && failed) << "acknowledged after a failure";
        failed = failed || !done;
        if (done) last = n;
    }
    if (failed) {
        EXPECT_TRUE((*store)->failure());
        EXPECT_TRUE((*store)->list({.kind = "pods"})) << "reads go on";
    }
    return last;
}

void expect_recovery(const std::string& dir, int acknowledged, int attempted) {
    auto log = sqlite_log({.data_dir = dir, .tuning = {.wal_bytes = 0}});
    ASSERT_TRUE(log) << log.error().message;
    auto store = Store::open(std::move(*log));
    ASSERT_TRUE(store) << store.error().message;
    const auto found = static_cast<int>((*store)->revision());
    ASSERT_GE(found, acknowledged) << "an acknowledged write is lost";
    ASSERT_LE(found, attempted);
    expect_step(**store, found);
    ASSERT_EQ((*store)->commit(create(pod("next"), "x"))->revision, static_cast<Revision>(found + 1));
}

TEST(StoreFaults, EveryWriteAndSyncFailsOnceAndNothingAcknowledgedIsLost) {
    using Fault = FaultVfs::Fault;
    int64_t runs = 0;
    for (const Fault fault : {Fault::Error, Fault::Full, Fault::Short}) {
        for (int64_t n = 1;; ++n) {
            SCOPED_TRACE(fmt::format("fault {} at operation {}", static_cast<int>(fault), n));
            const TempDir dir(TempDir::Where::Memory);
            const TempDir after_power_cut(TempDir::Where::Memory);
            base::Random random(static_cast<uint64_t>(n));
            int acknowledged = 0;
            int64_t operations = 0;
            {
                FaultVfs vfs("faulty");
                vfs.fail_at(n, fault);
                acknowledged = run_steps(small(dir.path(), "faulty"));
                vfs.power_cut(after_power_cut.path(), random, 0);
                operations = vfs.operations();
            }
            expect_recovery(dir.path(), acknowledged, kSteps);
            if (std::filesystem::exists(after_power_cut.path() + "/store.db")) {
                expect_recovery(after_power_cut.path(), acknowledged, kSteps);
            } else {
                ASSERT_EQ(acknowledged, 0);
            }
            if (HasFailure()) return;
            ++runs;
            if (operations < n) break;
        }
    }
    fmt::print("{} faults\n", runs);
}

TEST(StoreFaults, APowerCutAtEveryWriteAndSyncLosesNothingAcknowledged) {
    const uint64_t seed = base::seed_from_system() % 1'000'000'000;
    fmt::print("seed {}\n", seed);
    base::Random random(seed);
    const TempDir dir(TempDir::Where::Memory);
    FaultVfs vfs("cut");
    std::atomic<int> acknowledged = 0;
    int64_t cuts = 0;
    vfs.before_each([&] {
        if (!std::filesystem::exists(dir.path() + "/store.db") || testing::Test::HasFailure()) return;
        for (const uint64_t kept : {0, 2, 4}) {
            SCOPED_TRACE(fmt::format("seed {}, operation {}, kept {}/4", seed, vfs.operations(), kept));
            const TempDir left(TempDir::Where::Memory);
            vfs.power_cut(left.path(), random, kept);
            expect_recovery(left.path(), acknowledged, kSteps);
            ++cuts;
        }
    });
    EXPECT_EQ(run_steps(small(dir.path(), "cut"), [&](int n) { acknowledged = n; }), kSteps);
    fmt::print("{} power cuts\n", cuts);
}

}  // namespace
}  // namespace berth::store
