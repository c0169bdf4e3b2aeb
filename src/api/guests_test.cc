#include "api/guests.h"

#include <gtest/gtest.h>

#include <optional>

namespace berth::api {
namespace {

using std::chrono::seconds;

class GuestsTest : public testing::Test {
protected:
    GuestsTest() {
        options.max_connections = 5;
        options.max_idle_per_peer = 2;
        options.max_held_per_peer = 100;
        options.max_held = 150;
    }

    // Idle from then on; its number is told when it must go.
    std::unique_ptr<Guest> enter(const std::string& address, int at) {
        auto guest = guests.enter(address, Guests::Time{} + seconds(at));
        if (!guest) return guest;
        guest->on_eviction([this, n = ++came] { gone.push_back(n); });
        guest->set_idle(Guests::Time{} + seconds(at));
        return guest;
    }

    HttpOptions options;
    std::shared_ptr<HttpCounters> counters = std::make_shared<HttpCounters>();
    Guests guests{options, counters};
    int came = 0;
    std::vector<int> gone;
};

TEST_F(GuestsTest, OfAPeersManyIdleOnesThoseGoThatAreSoForLongest) {
    const auto one = enter("10.0.0.1", 0), two = enter("10.0.0.1", 0), other = enter("10.0.0.2", 0);
    const auto burst = enter("10.0.0.1", 4);
    EXPECT_TRUE(gone.empty()) << "a burst has time to say who it is";
    const auto later = enter("10.0.0.1", 5);
    EXPECT_EQ(gone, (std::vector{1, 2})) << "more go than come";
}

TEST_F(GuestsTest, WhoIsKnownOrAsksForSomethingKeepsHisPlace) {
    options.max_connections = 100;
    const auto one = enter("10.0.0.1", 0), two = enter("10.0.0.1", 0);
    one->set_known();
    two->set_busy();
    const auto three = enter("10.0.0.1", 0), four = enter("10.0.0.1", 0), five = enter("10.0.0.1", 9);
    EXPECT_EQ(gone, std::vector{3});
    two->set_idle(Guests::Time{} + seconds(9));
    five->set_known();
    const auto six = enter("10.0.0.1", 13);
    EXPECT_EQ(gone, (std::vector{3, 4})) << "the second one is idle for four seconds only";
}

TEST_F(GuestsTest, WhenAllPlacesAreTakenTheOldestUnknownOneGoes) {
    std::vector<std::unique_ptr<Guest>> all;
    for (int i = 0; i < 5; ++i) all.push_back(enter("10.0.0." + std::to_string(i), 0));
    all[0]->set_known();
    all.push_back(enter("10.0.1.0", 0));
    EXPECT_EQ(gone, std::vector{2});
    for (auto& guest : all) {
        guest->set_known();
        guest->set_busy();
    }
    EXPECT_EQ(enter("10.0.2.0", 0), nullptr) << "everybody is known and asks for something";
    all[2].reset();
    EXPECT_NE(enter("10.0.2.0", 0), nullptr);
}

// Nobody with an identity, nor with one that was revoked, keeps others out by connections that ask for nothing.
TEST_F(GuestsTest, WhenAllAreKnownALongIdleOneOfThePeerWithTheMostGoes) {
    const auto known = [this](const std::string& address, int at) {
        auto guest = enter(address, at);
        guest->set_known();
        return guest;
    };
    const auto few = known("10.0.0.1", 0), first = known("10.0.0.2", 3), second = known("10.0.0.2", 1);
    const auto third = known("10.0.0.2", 2), watching = known("10.0.0.2", 0);
    watching->set_busy();
    first->set_busy();
    first->set_idle(Guests::Time{} + seconds(4));
    const auto next = enter("10.0.0.3", 9);
    EXPECT_NE(next, nullptr);
    EXPECT_EQ(gone, std::vector{3});
    next->set_known();
    EXPECT_TRUE(guests.make_place());
    EXPECT_EQ(gone, (std::vector{3, 4}));
}

TEST_F(GuestsTest, WhoWasToldToGoBeforeHeBeganHearsOfIt) {
    const auto early = guests.enter("10.0.0.1", {});
    EXPECT_TRUE(guests.make_place());
    EXPECT_FALSE(early->on_eviction([] {}));
    EXPECT_FALSE(guests.make_place());
}

TEST_F(GuestsTest, BytesAreCountedByPeerAndInAll) {
    auto one = enter("10.0.0.1", 0), two = enter("10.0.0.1", 0), other = enter("10.0.0.2", 0);
    EXPECT_TRUE(one->hold(60));
    EXPECT_FALSE(two->hold(41));
    EXPECT_TRUE(two->hold(40));
    EXPECT_FALSE(other->hold(51));
    EXPECT_TRUE(other->hold(50));
    EXPECT_EQ(counters->held, 150u);
    EXPECT_TRUE(one->hold(0));
    EXPECT_TRUE(two->hold(100));
    two.reset();
    other.reset();
    EXPECT_EQ(counters->held, 0u);
}

TEST_F(GuestsTest, OneIPv6NetworkIsOnePeer) {
    const auto one = enter("2001:db8::1", 0), two = enter("2001:db8::2", 0), other = enter("2001:db8:0:1::1", 0);
    const auto next = enter("2001:db8::3", 5);
    EXPECT_EQ(gone, std::vector{1});
}

}  // namespace
}  // namespace berth::api
