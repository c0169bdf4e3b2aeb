// Whatever is written through the front door, by whomever: no write makes a node hold more than it has, and what has
// room is let in. BERTH_SEED and BERTH_SEEDS choose which stories.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "attacker.h"

namespace berth::attack {
namespace {

constexpr int kMoves = 250;

uint64_t number(const char* name, uint64_t otherwise) {
    const char* given = std::getenv(name);
    return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

// How often something was tried that is not just nonsense, and came to pass, or not.
struct Tally {
    std::map<std::string, int> done, refused;

    void count(const Move& move) {
        if (move.code == 404) return;
        const bool linked = move.body.find("reservation-allocated") != std::string::npos;
        const auto what = move.fits                         ? "plain placement"
                          : move.path.ends_with("/binding") ? linked ? "linked bind" : "bind"
                          : move.path.ends_with("/resize")  ? "resize"
                          : move.path.ends_with("/status")
                              ? move.path.find("reservations") != std::string::npos ? "reservation status" : "status"
                              : "other";
        const bool came = move.fits ? move.placed : move.code < 300;
        ++(came ? done : refused)[what];
    }
};

std::string attack(uint64_t seed, Tally& tally) {
    Attacker attacker(seed);
    Picture now = look(attacker.store(), {});
    for (int i = 0; i < kMoves; ++i) {
        const Move move = attacker.step(now);
        const Picture next = look(attacker.store(), now);
        const auto where = fmt::format("seed {} move {}: {}", seed, i, move.text());
        if (move.code >= 500 || move.code == 0) return where + ": an internal error";
        if (const auto why = complaint(now, next, move.node_written, move.who == "importer"); !why.empty())
            return where + ": " + why;
        if (move.fits && *move.fits != move.placed) {
            return where + (*move.fits ? ": refused though it fits" : ": placed though it does not fit");
        }
        tally.count(move);
        now = next;
    }
    return "";
}

TEST(Attack, NoWriteOversellsANode) {
    Tally tally;
    const uint64_t first = number("BERTH_SEED", 1);
    for (uint64_t seed = first; seed < first + number("BERTH_SEEDS", 60); ++seed) {
        ASSERT_EQ(attack(seed, tally), "") << "again with BERTH_SEED=" << seed << " BERTH_SEEDS=1";
    }
    // The attacker gets somewhere, or the test says nothing.
    for (const auto* what : {"plain placement", "linked bind", "resize", "reservation status", "status"}) {
        fmt::print("{}: {} done, {} refused\n", what, tally.done[what], tally.refused[what]);
        EXPECT_GT(tally.done[what], 0);
        EXPECT_GT(tally.refused[what], 0);
    }
}

}  // namespace
}  // namespace berth::attack
