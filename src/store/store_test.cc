#include "store/store.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include "store/history.h"
#include "store/scripted_log.h"
#include "store/test_store.h"

namespace berth::store {
namespace {

using Type = Event::Type;

std::vector<std::string> names(const Page& page) {
    std::vector<std::string> names;
    for (const auto& record : page.records) names.push_back(record->key.name);
    return names;
}

TEST(Store, CreatesUpdatesAndDeletes) {
    auto store = open_memory();
    const Commit created = *store->commit(create(pod("a"), "one"));
    EXPECT_EQ(created.revision, 1u);
    const Commit updated = *store->commit(update(pod("a"), "two"));
    EXPECT_EQ(updated.revision, 2u);
    const auto record = store->get(pod("a"));
    ASSERT_TRUE(record);
    EXPECT_EQ(*record->bytes, "two");
    EXPECT_EQ(record->uid, "uid-a");
    EXPECT_EQ(record->created, 1u);
    EXPECT_EQ(record->revision, 2u);
    const Commit gone = *store->commit(remove(pod("a")));
    EXPECT_EQ(gone.revision, 3u);
    EXPECT_EQ(*gone.records[0]->bytes, "two");
    EXPECT_EQ(gone.records[0]->revision, 3u);
    EXPECT_FALSE(store->get(pod("a")));
    EXPECT_EQ(store->revision(), 3u);
}

TEST(Store, RefusesWhatPreconditionsForbid) {
    auto store = open_memory();
    ASSERT_TRUE(store->commit(create(pod("a"), "one")));
    EXPECT_EQ(store->commit(create(pod("a"), "x")).error().reason, Reason::AlreadyExists);
    EXPECT_EQ(store->commit(update(pod("b"), "x")).error().reason, Reason::NotFound);
    EXPECT_EQ(store->commit(remove(pod("b"))).error().reason, Reason::NotFound);
    Txn stale = update(pod("a"), "x");
    stale.writes[0].if_revision = 7;
    EXPECT_EQ(store->commit(stale).error().reason, Reason::Conflict);
    Txn foreign = remove(pod("a"));
    foreign.writes[0].if_uid = "other";
    EXPECT_EQ(store->commit(foreign).error().reason, Reason::Conflict);
    Txn check{{{.op = Op::Check, .key = pod("a"), .if_revision = 2}}};
    EXPECT_EQ(store->commit(check).error().reason, Reason::Conflict);
    EXPECT_EQ(store->revision(), 1u);
    EXPECT_EQ(store->commit(create({"apps/deployments", "ns", "a"}, "x"))->revision, 2u);
    EXPECT_EQ(store->commit(create({"apps/deployments", "ns", "a"}, "x")).error().message,
              "deployments.apps \"a\" already exists");
}

TEST(Store, ATransactionIsAllOrNoneAtOneRevision) {
    auto store = open_memory();
    ASSERT_TRUE(store->commit(create(pod("a"), "one")));
    Txn both{{update(pod("a"), "two").writes[0], create(pod("a"), "x").writes[0]}};
    EXPECT_EQ(store->commit(both).error().reason, Reason::BadRequest);
    both.writes[1] = remove(pod("b")).writes[0];
    EXPECT_EQ(store->commit(both).error().reason, Reason::NotFound);
    EXPECT_EQ(*store->get(pod("a"))->bytes, "one");
    both.writes[1] = create(pod("b"), "new").writes[0];
    EXPECT_EQ(store->commit(both)->revision, 2u);
    EXPECT_EQ(store->get(pod("a"))->revision, 2u);
    EXPECT_EQ(store->get(pod("b"))->revision, 2u);
}

TEST(Store, TheSameBytesAgainChangeNothing) {
    auto store = open_memory();
    ASSERT_TRUE(store->commit(create(pod("a"), "one")));
    ASSERT_TRUE(store->commit(create(pod("b"), "two")));
    auto watch = *store->watch({"pods"}, 2);
    const Commit again = *store->commit(update(pod("a"), "one"));
    EXPECT_EQ(again.revision, 1u);
    EXPECT_EQ(again.records[0]->revision, 1u);
    EXPECT_EQ(store->revision(), 2u);
    EXPECT_TRUE(watch->poll(10)->empty());
}

TEST(Store, AWriteIsSeenOnlyWhenDurable) {
    ScriptedLog::Disk disk;
    auto log = std::make_unique<ScriptedLog>(disk);
    ScriptedLog& hand = *log;
    auto store = *Store::open(std::move(log));
    auto watch = *store->watch({"pods"}, 0);
    std::vector<std::string> told;
    store->submit(create(pod("a"), "one"), [&](Result<Commit>) { told.push_back("create"); });
    store->submit(update(pod("a"), "one"), [&](Result<Commit>) { told.push_back("no change"); });
    EXPECT_TRUE(told.empty()) << "neither may be acknowledged before the first is durable";
    EXPECT_FALSE(store->get(pod("a")));
    EXPECT_TRUE(store->head(pod("a")));
    EXPECT_TRUE(store->list({.kind = "pods"})->records.empty());
    EXPECT_TRUE(watch->poll(10)->empty());
    EXPECT_EQ(store->revision(), 0u);
    hand.sync(1);
    EXPECT_EQ(told, (std::vector<std::string>{"create", "no change"}));
    EXPECT_TRUE(store->get(pod("a")));
    EXPECT_EQ(watch->poll(10)->size(), 1u);
}

TEST(Store, PreconditionsSeeThePendingHead) {
    ScriptedLog::Disk disk;
    auto log = std::make_unique<ScriptedLog>(disk);
    ScriptedLog& hand = *log;
    auto store = *Store::open(std::move(log));
    std::optional<Reason> refused;
    const auto expect_refusal = [&](Result<Commit> result) { refused = result.error().reason; };
    store->submit(create(pod("a"), "one"), [](Result<Commit>) {});
    store->submit(create(pod("a"), "two"), expect_refusal);
    EXPECT_EQ(refused, Reason::AlreadyExists);
    store->submit(remove(pod("a")), [](Result<Commit>) {});
    store->submit(remove(pod("a")), expect_refusal);
    EXPECT_EQ(refused, Reason::NotFound);
    hand.sync(2);
    EXPECT_EQ(store->revision(), 2u);
    EXPECT_FALSE(store->get(pod("a")));
}

TEST(Store, AFailedLogFailsWhatIsPendingAndAllThatFollows) {
    ScriptedLog::Disk disk;
    auto log = std::make_unique<ScriptedLog>(disk);
    ScriptedLog& hand = *log;
    auto store = *Store::open(std::move(log));
    store->submit(create(pod("a"), "one"), [](Result<Commit>) {});
    hand.sync(1);
    std::optional<Error> lost;
    store->submit(create(pod("b"), "two"), [&](Result<Commit> result) { lost = result.error(); });
    hand.fail(base::internal("disk on fire"));
    ASSERT_TRUE(lost);
    EXPECT_NE(lost->message.find("disk on fire"), std::string::npos);
    EXPECT_FALSE(store->commit(create(pod("c"), "x")));
    EXPECT_TRUE(store->failure());
    EXPECT_TRUE(store->get(pod("a")));
    EXPECT_FALSE(store->head(pod("b")));
}

TEST(Store, RefusesWritesWhenTooManyWait) {
    ScriptedLog::Disk disk;
    auto store = *Store::open(std::make_unique<ScriptedLog>(disk), {.max_pending_bytes = 4});
    size_t closed = 0;
    store->submit(create(pod("a"), "12345"), [&](Result<Commit> result) { closed += !result; });
    EXPECT_EQ(store->commit(create(pod("b"), "1")).error().reason, Reason::TooManyRequests);
    store.reset();
    EXPECT_EQ(closed, 1u) << "whoever waits is told";
}

TEST(Store, ListsInOrderByPage) {
    auto store = open_memory();
    for (const char* name : {"d", "b", "a", "c"}) ASSERT_TRUE(store->commit(create(pod(name), name)));
    ASSERT_TRUE(store->commit(create({"pods", "other", "z"}, "z")));
    ASSERT_TRUE(store->commit(create({"nodes", "", "n"}, "n")));
    Page page = *store->list({.kind = "pods", .limit = 2});
    EXPECT_EQ(names(page), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(page.remaining, 3u);
    EXPECT_EQ(page.revision, 6u);
    ASSERT_TRUE(store->commit(remove(pod("c"))));
    ASSERT_TRUE(store->commit(update(pod("d"), "changed")));
    ASSERT_TRUE(store->commit(create(pod("bb"), "late")));
    page = *store->list({.kind = "pods", .limit = 2, .after = page.next, .at = page.revision});
    EXPECT_EQ(names(page), (std::vector<std::string>{"c", "d"}));
    EXPECT_EQ(*page.records[1]->bytes, "d") << "as it was at the snapshot";
    EXPECT_EQ(page.remaining, 1u);
    page = *store->list({.kind = "pods", .limit = 2, .after = page.next, .at = page.revision});
    EXPECT_EQ(names(page), (std::vector<std::string>{"z"}));
    EXPECT_FALSE(page.next);
    EXPECT_EQ(names(*store->list({.kind = "pods", .ns = "default"})), (std::vector<std::string>{"a", "b", "bb", "d"}));
    EXPECT_TRUE(store->list({.kind = "leases"})->records.empty());
}

TEST(Store, TooOldAndTooNewAreSaid) {
    auto store = open_memory({.keep_events = 2, .keep_age = base::Duration(-1)});
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(store->commit(create(pod("p" + std::to_string(i)), "x")));
    EXPECT_EQ(store->list({.kind = "pods", .at = 2}).error().reason, Reason::Expired);
    EXPECT_EQ(store->list({.kind = "pods", .at = 3})->records.size(), 3u);
    EXPECT_EQ(store->watch({"pods"}, 2).error().message, "too old resource version: 2 (3)");
    EXPECT_TRUE(store->watch({"pods"}, 3));
    EXPECT_TRUE(store->watch({"nodes"}, 1)) << "other kinds lost nothing";
    EXPECT_EQ(store->watch({"pods"}, 6).error().reason, Reason::Timeout);
    EXPECT_EQ(store->list({.kind = "pods", .at = 6}).error().causes[0].reason, "ResourceVersionTooLarge");
}

TEST(Store, HistoryIsBoundedByBytesAndTheLargestKindPays) {
    auto store = open_memory({.keep_events = 1000, .max_bytes = 20'000});
    ASSERT_TRUE(store->commit(create({"nodes", "", "n"}, "n")));
    ASSERT_TRUE(store->commit(create(pod("a"), "x")));
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(store->commit(update(pod("a"), std::string(900, 'x') + std::to_string(i))));
    EXPECT_FALSE(store->watch({"pods"}, 10));
    EXPECT_TRUE(store->watch({"pods"}, 100));
    EXPECT_TRUE(store->watch({"nodes"}, 0));
}

struct Refusing : Guard {
    Status admit(std::span<const EventPtr> events, const Head& head) override {
        for (const auto& event : events) {
            if (*event->record->bytes == "forbidden") return base::conflict("no");
            EXPECT_EQ(head.find(event->record->key), event->previous);
            admitted.push_back(event->record->revision);
        }
        return {};
    }
    void rolled_back(Revision durable) override { back_to = durable; }
    std::vector<Revision> admitted;
    std::optional<Revision> back_to;
};

TEST(Store, TheGuardJudgesInCommitOrderAndHearsOfRollback) {
    ScriptedLog::Disk disk;
    auto log = std::make_unique<ScriptedLog>(disk);
    ScriptedLog& hand = *log;
    auto store = *Store::open(std::move(log));
    Refusing guard;
    store->set_guard(&guard);
    store->submit(create(pod("a"), "one"), [](Result<Commit>) {});
    EXPECT_EQ(store->commit(update(pod("a"), "forbidden")).error().message, "no");
    store->submit(update(pod("a"), "two"), [](Result<Commit>) {});
    store->submit(update(pod("a"), "two"), [](Result<Commit>) {});
    EXPECT_EQ(guard.admitted, (std::vector<Revision>{1, 2}));
    hand.sync(1);
    hand.fail(base::internal("gone"));
    EXPECT_EQ(guard.back_to, 1u);
}

TEST(Store, WhatHasAgedIsBoundedMoreTightly) {
    base::ManualClock clock;
    const HistoryLimits limits{.keep_events = 1000, .keep_age = std::chrono::minutes(5), .aged_bytes = 20'000};
    auto store = *Store::open(memory_log(), {.history = limits, .clock = &clock});
    ASSERT_TRUE(store->commit(create(pod("a"), "")));
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(store->commit(update(pod("a"), std::to_string(i) + std::string(1000, 'x'))));
    clock.advance(std::chrono::minutes(4));
    store->forget_aged();
    EXPECT_TRUE(store->watch({"pods"}, 1));
    clock.advance(std::chrono::minutes(2));
    store->forget_aged();
    EXPECT_EQ(store->watch({"pods"}, 80).error().reason, Reason::Expired);
    EXPECT_EQ((*store->watch({"pods"}, 95))->poll(10)->size(), 6u);
}

// What a history says it holds is what the allocator gave for it; some more is rounded up.
TEST(History, CountsWhatItHolds) {
    const auto used = [] { return mallinfo2().uordblks; };
    const size_t before = used();
    if (before == 0) GTEST_SKIP() << "a sanitizer's allocator does not say";
    History history(0);
    RecordPtr last;
    for (Revision i = 1; i <= 2000; ++i) {
        auto record = std::make_shared<Record>();
        record->key = {"pods", "default", "workload-5d8f7c9b64-abcde"};
        record->uid = "0b1c2d3e-4f50-4a6b-8c7d-9e0f1a2b3c4d";
        record->bytes = std::make_shared<const std::string>(1500, 'x');
        record->revision = i;
        const auto type = last ? Event::Type::Modified : Event::Type::Added;
        history.push(std::make_shared<Event>(Event{type, record, last}), {});
        last = record;
    }
    const auto held = static_cast<double>(used() - before);
    EXPECT_NEAR(static_cast<double>(history.bytes()), held, held / 10);
}

TEST(Store, RecoversObjectsRevisionAndHistory) {
    ScriptedLog::Disk disk;
    {
        auto log = std::make_unique<ScriptedLog>(disk);
        ScriptedLog& hand = *log;
        auto store = *Store::open(std::move(log));
        store->submit(create(pod("a"), "one"), [](Result<Commit>) {});
        store->submit(update(pod("a"), "two"), [](Result<Commit>) {});
        store->submit(create(pod("b"), "x"), [](Result<Commit>) {});
        store->submit(remove(pod("b")), [](Result<Commit>) {});
        hand.sync(4);
    }
    auto store = *Store::open(std::make_unique<ScriptedLog>(disk));
    EXPECT_EQ(store->recovered().objects, 1u);
    EXPECT_EQ(store->revision(), 4u) << "a revision is not given twice, also when the last one was a deletion";
    EXPECT_EQ(*store->get(pod("a"))->bytes, "two");
    EXPECT_EQ(store->get(pod("a"))->created, 1u);
    auto watch = *store->watch({"pods"}, 1);
    const auto events = *watch->poll(10);
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0]->type, Type::Modified);
    EXPECT_EQ(events[1]->type, Type::Added);
    EXPECT_EQ(events[2]->type, Type::Deleted);
    EXPECT_EQ(*events[2]->record->bytes, "x");
}

}  // namespace
}  // namespace berth::store
