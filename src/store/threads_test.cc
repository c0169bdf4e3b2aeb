#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "store/sqlite_log.h"
#include "store/temp_dir.h"
#include "store/test_store.h"

// Many threads at once; what ThreadSanitizer is for.
namespace berth::store {
namespace {

constexpr int kWriters = 4;
constexpr int kWrites = 150;

// Follows a kind until it has seen `count` events: each once, in order, and each object's versions without a gap.
void follow(Store& store, size_t count) {
    std::mutex mutex;
    std::condition_variable wake;
    bool notified = false;
    const auto watch = *store.watch({"pods"}, 0, [&] {
        std::lock_guard lock(mutex);
        notified = true;
        wake.notify_one();
    });
    std::map<std::string, int> versions;
    Revision last = 0;
    for (size_t seen = 0; seen < count;) {
        const auto events = *watch->poll(7);
        for (const auto& event : events) {
            EXPECT_GT(event->record->revision, last);
            last = event->record->revision;
            EXPECT_EQ(std::stoi(*event->record->bytes), versions[event->record->key.name]++);
        }
        seen += events.size();
        if (!events.empty()) continue;
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return notified; });
        notified = false;
    }
    EXPECT_EQ(watch->progress(), last);
}

void write_all(Store& store, int writer) {
    const Key key = pod(std::to_string(writer));
    for (int n = 0; n < kWrites; ++n) {
        const auto done = store.commit(n == 0 ? create(key, "0") : update(key, std::to_string(n)));
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(*store.get(key)->bytes, std::to_string(n)) << "what is acknowledged can be read";
    }
}

void read_all(Store& store, const std::atomic<bool>& stop) {
    Revision last = 0;
    while (!stop) {
        const auto page = *store.list({.kind = "pods", .limit = 2});
        EXPECT_GE(page.revision, last);
        last = page.revision;
        // Watches that come and go while others write.
        const auto watch = store.watch({"pods"}, page.revision, [] {});
        if (watch) {
            EXPECT_TRUE((*watch)->poll(1));
        }
        std::this_thread::yield();
    }
}

void run(Store& store) {
    std::atomic<bool> stop = false;
    std::vector<std::thread> followers;
    std::vector<std::thread> writers;
    for (int i = 0; i < 3; ++i) followers.emplace_back([&] { follow(store, size_t{kWriters} * kWrites); });
    std::thread reader([&] { read_all(store, stop); });
    for (int i = 0; i < kWriters; ++i) writers.emplace_back([&, i] { write_all(store, i); });
    for (auto& writer : writers) writer.join();
    for (auto& follower : followers) follower.join();
    stop = true;
    reader.join();
    EXPECT_EQ(store.revision(), Revision{kWriters} * kWrites);
}

TEST(StoreThreads, WritersReadersAndWatchersInMemory) {
    auto store = open_memory();
    run(*store);
}

TEST(StoreThreads, WritersReadersAndWatchersOnDisk) {
    const TempDir dir;
    auto store = *Store::open(*sqlite_log({.data_dir = dir.path(), .keep = {.rows = 100}}));
    run(*store);
}

}  // namespace
}  // namespace berth::store
