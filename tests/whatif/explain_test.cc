// What `berth explain -f` says of each object of a dump is what `berth whatif -f` decides of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "cli/explanation.h"
#include "cli/question.h"
#include "history.h"
#include "live.h"
#include "settings.h"

namespace berth::whatif {
namespace {

constexpr int kDone = 8, kPending = 5;

// A cluster in which things happened, and a few objects that nobody has looked at.
cli::Question half_done(Live& live, uint64_t seed, std::string& story) {
    History history(seed);
    story = fmt::format("seed {}:", seed);
    int pending = 0;
    std::vector<Json> more;
    for (int i = 0; pending < kPending; ++i) {
        const Deed deed = i < 2 ? History::make_node(i == 0 ? "n-b" : "n-a", 8) : history.next(live.dump());
        const bool wants_place = deed.request.path == kPods || deed.request.path == kReservations;
        const bool last = i >= kDone;
        if (last && (!wants_place || deed.request.method != "POST")) continue;
        story += (last ? "\npending: " : "\n") + deed.what;
        if (!last) {
            live.ask(deed.request);
            live.settle();
            continue;
        }
        ++pending;
        more.push_back(*base::parse_json(deed.request.body));
        more.back().as_object()["kind"] = deed.request.path == kPods ? "Pod" : "Reservation";
    }
    cli::Question out;
    out.now = base::system_clock().wall();
    for (auto& document : live.dump()) out.documents.emplace_back("live", std::move(document));
    for (auto& document : more) out.documents.emplace_back("more", std::move(document));
    return out;
}

std::vector<std::string> open_nodes(const cli::Explanation& said) {
    std::vector<std::string> out;
    for (const auto& [node, blocks] : said.nodes) {
        if (blocks.empty()) out.push_back(node);
    }
    return out;
}

void check_explained(const cli::Question& question, const run::Placement& answer, const std::string& story) {
    const auto turn = cli::load_until(question, {answer.is_reservation, answer.ns, answer.name});
    ASSERT_TRUE(turn) << turn.error().message;
    run::World& world = *turn->loaded.world;
    const auto said = answer.is_reservation ? cli::explain_reservation(world, answer.name, &turn->foretold)
                                            : cli::explain_pod(world, answer.ns, answer.name, &turn->foretold);
    ASSERT_TRUE(said) << said.error().message << story;
    const std::string what = fmt::format("{}\n{}: {}", story, answer.name, said->summary);
    EXPECT_EQ(said->node, answer.node) << what;
    EXPECT_EQ(open_nodes(*said), answer.feasible) << what;
    EXPECT_EQ(said->victims, answer.victims) << what;
    if (answer.node.empty()) {
        EXPECT_EQ(said->summary, answer.message) << what;
    }
}

TEST(ExplainOfADump, SaysWhatWhatifDecides) {
    Live live;
    each_seed(200, [&](uint64_t seed) {
        std::string story;
        const cli::Question asked = half_done(live, seed, story);
        const auto loaded = cli::load(asked);
        ASSERT_TRUE(loaded) << loaded.error().message;
        for (const auto& answer : loaded->world->settle()) check_explained(asked, answer, story);
        live.clear();
    });
}

}  // namespace
}  // namespace berth::whatif
