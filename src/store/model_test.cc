#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "base/random.h"
#include "store/scripted_log.h"
#include "store/sqlite_log.h"
#include "store/temp_dir.h"
#include "store/test_store.h"

// Random histories against the plainest model there is: a map for every revision.
namespace berth::store {
namespace {

struct Told {
    Event::Type type;
    Key key;
    std::string text;
    Revision revision;
    bool operator==(const Told&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Told& told) {
    return out << fmt::format("{}:{} {} {}", told.revision, static_cast<int>(told.type), to_text(told.key), told.text);
}

struct Object {
    std::string text;
    std::string uid;
    Revision created;
    Revision revision;
    bool operator==(const Object&) const = default;
};

using Objects = std::map<Key, Object>;

// states[r] is everything at revision r; told[r] what revision r changed.
struct Model {
    std::vector<Objects> states{1};
    std::vector<std::vector<Told>> told{1};

    Revision last() const { return states.size() - 1; }
    const Objects& now() const { return states.back(); }
    void cut(Revision back_to) {
        states.resize(back_to + 1);
        told.resize(back_to + 1);
    }
    std::vector<Told> events(const Selector& selector, Revision after, Revision until) const {
        std::vector<Told> events;
        for (Revision r = after + 1; r <= until; ++r) {
            for (const Told& each : told[r]) {
                if (selector.matches(each.key)) events.push_back(each);
            }
        }
        return events;
    }

    std::optional<Reason> refusal(const Txn& txn) const {
        for (const Write& write : txn.writes) {
            const auto it = now().find(write.key);
            const bool taken = it != now().end();
            if (write.op == Op::Create && taken) return Reason::AlreadyExists;
            if (write.op == Op::Create) continue;
            if (!taken) return Reason::NotFound;
            if (write.if_uid && *write.if_uid != it->second.uid) return Reason::Conflict;
            if (write.if_revision && *write.if_revision != it->second.revision) return Reason::Conflict;
        }
        return std::nullopt;
    }
    // The revision that the author is told.
    Revision apply(const Txn& txn) {
        Objects next = now();
        std::vector<Told> changes;
        const Revision revision = last() + 1;
        Revision newest = 0;
        for (const Write& write : txn.writes) {
            const auto it = next.find(write.key);
            if (it != next.end()) newest = std::max(newest, it->second.revision);
            if (write.op == Op::Delete) {
                changes.push_back({Event::Type::Deleted, write.key, it->second.text, revision});
                next.erase(it);
            } else if (write.op == Op::Create) {
                changes.push_back({Event::Type::Added, write.key, *write.bytes, revision});
                next[write.key] = {*write.bytes, write.uid, revision, revision};
            } else if (write.op == Op::Update && it->second.text != *write.bytes) {
                changes.push_back({Event::Type::Modified, write.key, *write.bytes, revision});
                it->second.text = *write.bytes;
                it->second.revision = revision;
            }
        }
        if (changes.empty()) return newest;
        states.push_back(std::move(next));
        told.push_back(std::move(changes));
        return revision;
    }
};

Told told_of(const Event& event) {
    return {event.type, event.record->key, *event.record->bytes, event.record->revision};
}

Object object_of(const Record& record) {
    return {*record.bytes, record.uid, record.created, record.revision};
}

Key random_key(base::Random& random) {
    static const char* kinds[] = {"pods", "nodes", "apps/deployments"};
    static const char* namespaces[] = {"a", "b", "b-c"};
    const size_t kind = random.below(3);
    return {kinds[kind], kind == 1 ? "" : namespaces[random.below(3)],
            std::string(1, static_cast<char>('p' + random.below(5)))};
}

Selector random_selector(base::Random& random) {
    const Key key = random_key(random);
    Selector selector{key.kind};
    if (random.chance(1, 2)) selector.ns = key.ns;
    if (random.chance(1, 4)) selector.name = key.name;
    return selector;
}

Txn random_txn(base::Random& random, const Model& model) {
    std::map<Key, Write> writes;
    const size_t count = random.chance(2, 3) ? 1 : 1 + random.below(5);
    for (size_t i = 0; i < count; ++i) {
        Write write{.op = static_cast<Op>(random.below(4)), .key = random_key(random)};
        const auto it = model.now().find(write.key);
        // Mostly sensible, so that most transactions pass.
        if (it == model.now().end() && random.chance(9, 10)) write.op = Op::Create;
        if (it != model.now().end() && write.op == Op::Create && random.chance(9, 10)) write.op = Op::Update;
        write.bytes = bytes(std::to_string(random.below(4)));
        write.uid = fmt::format("u{}", random.below(1000));
        if (it != model.now().end() && random.chance(1, 3)) write.if_revision = it->second.revision - random.below(2);
        if (it != model.now().end() && random.chance(1, 3)) write.if_uid = random.chance(9, 10) ? it->second.uid : "x";
        writes[write.key] = write;
    }
    Txn txn;
    for (auto& [key, write] : writes) txn.writes.push_back(write);
    return txn;
}

struct Cursor {
    Selector selector;
    Revision at = 0;  // everything up to here was seen
    std::unique_ptr<Watch> watch = nullptr;
    std::atomic<bool> notified = true;
};

// A store over some log, the model of what it accepted, and the revision up to which the model is durable.
struct World {
    base::Random random;
    HistoryLimits limits = {};
    bool exact_floor = true;  // the log forgets nothing, so that `limits` alone say what is too old
    Model model = {};
    std::unique_ptr<Store> store = nullptr;
    std::vector<std::unique_ptr<Cursor>> cursors = {};

    // The newest event of the kind that is no longer kept.
    Revision floor(const std::string& kind) const {
        const auto events = model.events({kind}, 0, store->revision());
        return events.size() > limits.keep_events ? events[events.size() - limits.keep_events - 1].revision : 0;
    }

    void attach(Cursor& cursor) {
        auto watch = store->watch(cursor.selector, cursor.at, [&cursor] { cursor.notified = true; });
        if (exact_floor) {
            ASSERT_EQ(watch.ok(), cursor.at >= floor(cursor.selector.kind));
        }
        if (!watch) {
            ASSERT_EQ(watch.error().reason, Reason::Expired);
            cursor.at = store->revision();
            watch = store->watch(cursor.selector, cursor.at, [&cursor] { cursor.notified = true; });
        }
        cursor.notified = true;
        cursor.watch = std::move(*watch);
    }

    void poll(Cursor& cursor) {
        if (!cursor.watch) return attach(cursor);
        const auto events = cursor.watch->poll(1 + random.below(4));
        if (!events) {
            ASSERT_EQ(events.error().reason, Reason::Expired);
            if (exact_floor) {
                ASSERT_LT(cursor.at, floor(cursor.selector.kind));
            }
            cursor.watch.reset();
            cursor.at = store->revision();
            return attach(cursor);
        }
        const Revision progress = cursor.watch->progress();
        std::vector<Told> told;
        for (const auto& event : *events) told.push_back(told_of(*event));
        ASSERT_EQ(told, model.events(cursor.selector, cursor.at, progress));
        // The real log tells its watchers a moment after the author.
        if (!told.empty() && exact_floor) {
            ASSERT_TRUE(cursor.notified) << "events without a notification";
        }
        cursor.at = progress;
        if (told.empty()) {
            ASSERT_EQ(progress, store->revision());
            cursor.notified = false;
        }
    }

    void check_objects() const {
        const Objects& expected = model.states[store->revision()];
        size_t count = 0;
        for (const std::string& kind : store->kinds()) count += store->count(kind);
        ASSERT_EQ(count, expected.size());
        for (const auto& [key, object] : expected) {
            const auto record = store->get(key);
            ASSERT_TRUE(record) << to_text(key);
            ASSERT_EQ(object_of(*record), object) << to_text(key);
        }
    }

    void check_list(const Selector& selector, Revision at) {
        Objects found;
        Listing listing{.kind = selector.kind, .ns = selector.ns, .limit = random.below(4), .at = at};
        while (true) {
            const auto page = store->list(listing);
            if (exact_floor) {
                ASSERT_EQ(page.ok(), at >= floor(selector.kind)) << at;
            }
            if (!page) return;
            ASSERT_EQ(page->revision, at);
            for (const auto& record : page->records) found[record->key] = object_of(*record);
            if (!page->next) break;
            listing.after = page->next;
        }
        Objects expected;
        for (const auto& [key, object] : model.states[at]) {
            if (Selector{selector.kind, selector.ns}.matches(key)) expected[key] = object;
        }
        ASSERT_EQ(found, expected) << "at " << at;
    }

    // Every snapshot, and a watch from every revision.
    void check_history() {
        for (Revision at = 0; at <= store->revision(); ++at) {
            Cursor cursor{.selector = random_selector(random), .at = at};
            check_list(cursor.selector, at);
            attach(cursor);
            while (cursor.at < store->revision()) poll(cursor);
        }
    }

    void poll_some() {
        for (auto& cursor : cursors) {
            if (random.chance(1, 3)) poll(*cursor);
            if (random.chance(1, 20)) cursor->watch.reset();
        }
    }
};

World make_world(uint64_t seed) {
    World world{.random = base::Random(seed)};
    world.limits = {.keep_events = 1 + world.random.below(30), .keep_age = base::Duration(-1)};
    for (int i = 0; i < 5; ++i) {
        world.cursors.push_back(std::make_unique<Cursor>());
        world.cursors.back()->selector = random_selector(world.random);
    }
    return world;
}

// One step at a time, with entries held back, lost in crashes, or kept without a word.
void run_scripted(uint64_t seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world = make_world(seed);
    ScriptedLog::Disk disk;
    ScriptedLog* log = nullptr;
    Revision acknowledged = 0;
    bool crashing = false;
    const auto start = [&] {
        auto fresh = std::make_unique<ScriptedLog>(disk);
        log = fresh.get();
        world.store = *Store::open(std::move(fresh), {.history = world.limits});
        ASSERT_GE(world.store->revision(), acknowledged);
        world.model.cut(world.store->revision());
    };
    start();
    for (int step = 0; step < 80 && !testing::Test::HasFailure(); ++step) {
        const Txn txn = random_txn(world.random, world.model);
        const auto refusal = world.model.refusal(txn);
        const Revision expected = refusal ? 0 : world.model.apply(txn);
        const auto answered = std::make_shared<bool>(false);
        world.store->submit(txn, [&, answered, refusal, expected](Result<Commit> result) {
            *answered = true;
            if (crashing) return;
            EXPECT_EQ(result.ok(), !refusal);
            if (result && !refusal) {
                EXPECT_EQ(result->revision, expected);
                EXPECT_LE(expected, world.store->revision()) << "acknowledged before it is durable";
                acknowledged = std::max(acknowledged, expected);
            } else if (!result && refusal) {
                EXPECT_EQ(result.error().reason, *refusal);
            }
        });
        if (refusal) {
            EXPECT_TRUE(*answered);
        }
        while (log->waiting() > 0 && world.random.chance(2, 3)) log->sync(1);
        world.poll_some();
        if (world.random.chance(1, 25)) {
            log->sync_silently(world.random.below(3));
            for (auto& cursor : world.cursors) cursor->watch.reset();
            crashing = true;
            world.store.reset();
            crashing = false;
            start();
            world.check_objects();
        }
    }
    log->sync(log->waiting());
    world.check_objects();
    world.check_history();
    for (auto& cursor : world.cursors) cursor->watch.reset();
}

constexpr uint64_t kSeeds = 400;

TEST(StoreModel, AnyHistoryAgreesWithThePlainModel) {
    const uint64_t first = base::seed_from_system() % 1'000'000'000;
    fmt::print("seeds {}-{}\n", first, first + kSeeds - 1);
    for (uint64_t seed = first; seed < first + kSeeds && !HasFailure(); ++seed) run_scripted(seed);
}

// The same over the real log, with restarts and compaction.
void run_durable(uint64_t seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world = make_world(seed);
    world.exact_floor = false;
    const TempDir dir(TempDir::Where::Memory);
    const KeepLimits keep{.rows = world.random.below(20)};
    const auto start = [&] {
        world.store = *Store::open(*sqlite_log({.data_dir = dir.path(), .keep = keep}), {.history = world.limits});
        ASSERT_EQ(world.store->revision(), world.model.last());
        world.check_objects();
    };
    start();
    for (int step = 0; step < 60 && !testing::Test::HasFailure(); ++step) {
        const Txn txn = random_txn(world.random, world.model);
        const auto refusal = world.model.refusal(txn);
        const auto result = world.store->commit(txn);
        ASSERT_EQ(result.ok(), !refusal);
        if (result) {
            ASSERT_EQ(result->revision, world.model.apply(txn));
        }
        world.poll_some();
        if (world.random.chance(1, 15)) {
            for (auto& cursor : world.cursors) cursor->watch.reset();
            world.store.reset();
            start();
        }
    }
    world.check_history();
    for (auto& cursor : world.cursors) cursor->watch.reset();
}

TEST(StoreModel, TheDurableLogAgreesToo) {
    const uint64_t first = base::seed_from_system() % 1'000'000'000;
    fmt::print("seeds {}-{}\n", first, first + 14);
    for (uint64_t seed = first; seed < first + 15 && !HasFailure(); ++seed) run_durable(seed);
}

}  // namespace
}  // namespace berth::store
