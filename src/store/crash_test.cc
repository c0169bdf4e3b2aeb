#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/random.h"
#include "store/sqlite_log.h"
#include "store/temp_dir.h"
#include "store/test_store.h"

// kill -9, hundreds of times, under concurrent writers; BERTH_KILLS=1000 for a longer look.
namespace berth::store {
namespace {

constexpr int kWriters = 4;

SqliteOptions small(const std::string& dir) {
    return {.data_dir = dir, .keep = {.rows = 50}, .tuning = {.checkpoint_pages = 40, .wal_bytes = 200'000}};
}

std::array<Key, 3> keys_of(int writer) {
    return {pod(fmt::format("{}-a", writer)), pod(fmt::format("{}-b", writer)), pod(fmt::format("{}-c", writer))};
}

// One acknowledgement on the pipe; smaller than PIPE_BUF, so whole.
struct Ack {
    int writer = 0;
    int64_t number = 0;
    Revision revision = 0;
};

// Writes `number` into all objects of a writer at once; every fifth time they are deleted instead.
Txn turn(const Store& store, int writer, int64_t number) {
    const std::string text = std::to_string(number) + std::string(400, '.');
    Txn txn;
    for (const Key& key : keys_of(writer)) {
        const bool there = store.head(key) != nullptr;
        const Op op = !there ? Op::Create : number % 5 == 0 ? Op::Delete : Op::Update;
        txn.writes.push_back({.op = op, .key = key, .bytes = bytes(text), .uid = "u"});
    }
    return txn;
}

// Never returns: the parent kills it.
[[noreturn]] void write_until_killed(const std::string& dir, int pipe, std::array<int64_t, kWriters> from) {
    auto log = sqlite_log(small(dir));
    if (!log) _exit(3);
    auto store = Store::open(std::move(*log));
    if (!store) _exit(4);
    std::vector<std::thread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
        writers.emplace_back([&, writer] {
            for (int64_t number = from[static_cast<size_t>(writer)] + 1;; ++number) {
                const auto done = (*store)->commit(turn(**store, writer, number));
                if (!done) _exit(5);
                const Ack ack{writer, number, done->revision};
                if (write(pipe, &ack, sizeof ack) != sizeof ack) _exit(6);
            }
        });
    }
    for (auto& writer : writers) writer.join();
    _exit(7);
}

struct Known {
    std::array<int64_t, kWriters> number = {};
    Revision revision = 0;
};

// Reads acknowledgements, kills after `count` of them and a little more time, and reads the rest. How many there were.
uint64_t collect_and_kill(pid_t child, int pipe, int count, std::chrono::microseconds more, Known& known) {
    uint64_t taken = 0;
    const auto take = [&] {
        Ack ack;
        if (read(pipe, &ack, sizeof ack) != sizeof ack) return false;
        EXPECT_GT(ack.number, known.number[static_cast<size_t>(ack.writer)]);
        known.number[static_cast<size_t>(ack.writer)] = ack.number;
        known.revision = std::max(known.revision, ack.revision);
        ++taken;
        return true;
    };
    for (int i = 0; i < count && take(); ++i) {
    }
    std::this_thread::sleep_for(more);
    EXPECT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself with " << WEXITSTATUS(status);
    while (take()) {
    }
    return taken;
}

// Every acknowledged write is there; of each writer at most the one unacknowledged write that it had on its way, whole.
void expect_whole(const std::string& dir, Known& known) {
    auto log = sqlite_log(small(dir));
    ASSERT_TRUE(log) << log.error().message;
    auto store = Store::open(std::move(*log));
    ASSERT_TRUE(store) << store.error().message;
    ASSERT_GE((*store)->revision(), known.revision);
    known.revision = (*store)->revision();
    for (int writer = 0; writer < kWriters; ++writer) {
        const int64_t acknowledged = known.number[static_cast<size_t>(writer)];
        std::map<std::string, int> texts;
        for (const Key& key : keys_of(writer)) {
            const auto record = (*store)->get(key);
            ++texts[record ? record->bytes->substr(0, record->bytes->find('.')) : "none"];
        }
        ASSERT_EQ(texts.size(), 1u) << "a torn transaction of writer " << writer;
        const std::string found = texts.begin()->first;
        const auto shown = [](int64_t number) { return number % 5 == 0 ? "none" : std::to_string(number); };
        ASSERT_TRUE(found == shown(acknowledged) || found == shown(acknowledged + 1))
            << "writer " << writer << " was told " << acknowledged << " and the store has " << found;
        if (found == shown(acknowledged + 1)) known.number[static_cast<size_t>(writer)] = acknowledged + 1;
    }
}

TEST(StoreCrash, KillNineLosesNothingAcknowledgedAndTearsNothing) {
    const uint64_t seed = base::seed_from_system() % 1'000'000'000;
    fmt::print("seed {}\n", seed);
    base::Random random(seed);
    const char* asked = std::getenv("BERTH_KILLS");
    const int rounds = asked ? std::atoi(asked) : 250;
    const TempDir dir;
    Known known;
    uint64_t acknowledged = 0;
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
        SCOPED_TRACE(fmt::format("seed {} round {}", seed, round));
        int ends[2];
        ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) write_until_killed(dir.path(), ends[1], known.number);
        close(ends[1]);
        // A third of the kills fall into opening and recovery.
        const int count = random.chance(1, 3) ? 0 : static_cast<int>(random.below(120));
        acknowledged += collect_and_kill(child, ends[0], count, std::chrono::microseconds(random.below(8000)), known);
        close(ends[0]);
        if (!HasFailure()) expect_whole(dir.path(), known);
    }
    fmt::print("{} kills, {} acknowledged writes, {} revisions\n", rounds, acknowledged, known.revision);
    EXPECT_GT(known.revision, static_cast<Revision>(rounds));
}

}  // namespace
}  // namespace berth::store
