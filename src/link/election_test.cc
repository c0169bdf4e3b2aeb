#include "link/election.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace berth::link {
namespace {

using namespace std::chrono_literals;
using Kind = Election::Move::Kind;

// The one lease, as a server keeps it: every write needs the version it was decided on.
struct Shelf {
    std::optional<LeaseRecord> record;
    int version = 0;

    LeaseRecord store(LeaseRecord next) {
        next.object = fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}}}})", ++version);
        record = next;
        return next;
    }
    bool write(const Election::Move& move) {
        const bool fits = move.kind == Kind::Create ? !record : record && record->object == move.record.object;
        if (fits) store(move.record);
        return fits;
    }
};

// Lets one candidate do all it wants at this instant. `reachable`: its requests arrive; `answered`: so do the answers.
void turn(Election& election, Shelf& shelf, base::Instant now, base::Time wall, bool reachable = true,
          bool answered = true) {
    while (const auto move = election.move(now, wall)) {
        const bool done = reachable && (move->kind == Kind::Read || shelf.write(*move));
        if (!reachable || !answered || !done) {
            election.failed(now);
        } else if (move->kind == Kind::Read) {
            election.found(shelf.record, now);
        } else {
            election.written(*shelf.record);
        }
    }
}

base::Instant at(base::Duration since) {
    return base::Instant{} + (1000s + since);
}

TEST(Election, TheFirstMakesTheLeaseInKubesForm) {
    Shelf shelf;
    Election a("a", {}, 1);
    turn(a, shelf, at(0s), {1794780000'123456789});
    EXPECT_TRUE(a.leads(at(0s)));
    const Json object = base::parse_json(lease_text("kube-system", "berth-scheduler", *shelf.record)).value();
    EXPECT_EQ(base::to_text(*base::find(object, {"spec"})),
              R"({"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":"2026-11-15T22:00:00.123456Z",)"
              R"("renewTime":"2026-11-15T22:00:00.123456Z","leaseTransitions":0})");
    EXPECT_EQ(base::find_string(object, {"metadata", "resourceVersion"}), "1");
    EXPECT_EQ(read_lease(base::to_text(object))->duration, 15s);
}

TEST(Election, RenewsAndKeepsOthersOut) {
    Shelf shelf;
    Election a("a", {}, 1), b("b", {}, 2);
    for (int i = 0; i < 600; ++i) {
        const auto now = at(i * 100ms);
        turn(a, shelf, now, {});
        turn(b, shelf, now, {});
        ASSERT_TRUE(a.leads(now));
        ASSERT_FALSE(b.leads(now));
    }
    EXPECT_EQ(shelf.record->transitions, 0);
}

TEST(Election, TakesOverWhenTheLeaseEndsAndNeverTwoLead) {
    Shelf shelf;
    Election a("a", {}, 1), b("b", {}, 2);
    turn(a, shelf, at(0s), {});
    std::optional<base::Duration> took;
    for (int i = 0; i < 600; ++i) {
        const auto now = at(i * 50ms);
        turn(a, shelf, now, {}, /*reachable=*/i < 100);  // cut off after 5 s
        turn(b, shelf, now, {});
        ASSERT_FALSE(a.leads(now) && b.leads(now)) << i;
        if (b.leads(now) && !took) took = i * 50ms;
        if (i * 50ms >= 15s) {
            ASSERT_TRUE(a.lost(now));
        }
    }
    ASSERT_TRUE(took);
    EXPECT_GE(*took, 4s + 15s);
    EXPECT_LE(*took, 4s + 15s + 3s);  // seen up to 2.4 s after it was written
    EXPECT_EQ(shelf.record->transitions, 1);
}

// The times in the object are nonsense: an hour ahead, an hour behind, standing still.
TEST(Election, WallClocksDoNotMatter) {
    for (const auto skew : {3600s, -3600s, 0s}) {
        Shelf shelf;
        Election a("a", {}, 1), b("b", {}, 2);
        const base::Time theirs = base::Time{1794780000'000000000} + skew;
        for (int i = 0; i < 600; ++i) {
            const auto now = at(i * 100ms);
            turn(a, shelf, now, theirs);
            turn(b, shelf, now, {1794780000'000000000});
            ASSERT_TRUE(a.leads(now)) << skew.count();
            ASSERT_FALSE(b.leads(now)) << skew.count();
        }
    }
}

TEST(Election, ARenewalWhoseAnswerIsLostDoesNotCount) {
    Shelf shelf;
    Election a("a", {}, 1);
    turn(a, shelf, at(0s), {});
    for (int i = 1; i < 120; ++i) turn(a, shelf, at(i * 100ms), {}, true, /*answered=*/false);
    EXPECT_FALSE(a.leads(at(10s)));
    EXPECT_TRUE(a.lost(at(10s)));
    EXPECT_EQ(a.fence(), at(10s));
}

TEST(Election, AFailedRenewalIsTriedAgainFromWhatIsStored) {
    Shelf shelf;
    Election a("a", {}, 1);
    turn(a, shelf, at(0s), {});
    turn(a, shelf, at(2s), {}, true, /*answered=*/false);  // it took effect: the version moved on
    turn(a, shelf, at(4s), {});
    EXPECT_TRUE(a.leads(at(13s)));
    EXPECT_EQ(shelf.record->transitions, 0);
}

TEST(Election, WhoSeesAnotherHolderHasLost) {
    Shelf shelf;
    Election a("a", {}, 1);
    turn(a, shelf, at(0s), {});
    LeaseRecord other = *shelf.record;
    other.holder = "b";
    shelf.store(other);
    turn(a, shelf, at(2s), {});
    EXPECT_FALSE(a.lost(at(2s)));  // the conflict says only that something changed
    turn(a, shelf, at(4s), {});
    EXPECT_TRUE(a.lost(at(4s)));
    EXPECT_FALSE(a.move(at(60s), {}));
}

TEST(Election, ALeaseThatIsGivenBackIsTakenAtOnce) {
    Shelf shelf;
    Election a("a", {}, 1), b("b", {}, 2);
    turn(a, shelf, at(0s), {});
    turn(b, shelf, at(0s), {});
    EXPECT_FALSE(b.resignation({}));
    shelf.store(*a.resignation({}));
    turn(b, shelf, at(3s), {});
    EXPECT_TRUE(b.leads(at(3s)));
    EXPECT_EQ(shelf.record->transitions, 1);
}

TEST(Election, OnlyOneOfManyCandidatesWins) {
    Shelf shelf;
    std::vector<Election> all;
    for (int i = 0; i < 5; ++i) all.emplace_back(std::string(1, static_cast<char>('a' + i)), ElectionTimes{}, 10 + i);
    // All read before any writes.
    std::vector<Election::Move> writes;
    for (auto& each : all) {
        EXPECT_EQ(each.move(at(0s), {})->kind, Kind::Read);
        each.found(std::nullopt, at(0s));
        writes.push_back(*each.move(at(0s), {}));
    }
    for (size_t i = 0; i < all.size(); ++i) {
        shelf.write(writes[i]) ? all[i].written(*shelf.record) : all[i].failed(at(0s));
    }
    EXPECT_TRUE(all[0].leads(at(1s)));
    for (size_t i = 1; i < all.size(); ++i) EXPECT_FALSE(all[i].leads(at(1s)));
}

TEST(Election, TimesThatCannotWorkAreRefused) {
    EXPECT_TRUE(ElectionTimes{}.check().ok());
    EXPECT_FALSE((ElectionTimes{10s, 10s, 2s}.check().ok()));
    EXPECT_FALSE((ElectionTimes{15s, 2s, 2s}.check().ok()));
    EXPECT_FALSE((ElectionTimes{15s, 10s, 0s}.check().ok()));
}

}  // namespace
}  // namespace berth::link
