// What `berth whatif` says of a dump and one more deed is what a live server then does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "history.h"
#include "live.h"
#include "model/allocated.h"
#include "run/world.h"
#include "settings.h"

namespace berth::whatif {
namespace {

constexpr int kDeeds = 12;

// The picture of a cluster in memory, in the words of the server's documents.
Picture picture_in(const run::World& world) {
    Picture out;
    world.cluster().each_pod([&](const model::Pod& pod) {
        std::string draws;
        const auto links = model::read_links(pod.meta.annotations);
        if (links && links->allocated) draws += drawn_from(links->allocated->name);
        if (links) {
            for (const auto& draw : links->draws) draws += drawn_from(draw.name);
        }
        out.push_back(fmt::format("pod {} on {}{}", pod.meta.name, pod.node.empty() ? "-" : pod.node, draws));
    });
    for (const auto& held : world.holdings()) {
        const JsonObject amounts = model::amounts_document(held.allocated);
        std::string text = amounts.empty() ? "nothing" : base::to_text(amounts);
        for (const auto& owner : held.owners) text += " " + owner.name;
        if (world.cluster().reservation(held.name)->meta.labels.find("berth.dev/made-for") != nullptr) continue;
        out.push_back(fmt::format("reservation {} {} on {} holds {}", held.name, model::name_of(held.phase),
                                  held.node.empty() ? "-" : held.node, text));
    }
    std::sort(out.begin(), out.end());
    return out;
}

Picture foretold(std::vector<Json> documents, const History& history) {
    std::stable_sort(documents.begin(), documents.end(), [&](const Json& a, const Json& b) {
        return history.age_of(std::string(base::find_string(a, {"metadata", "name"}))) <
               history.age_of(std::string(base::find_string(b, {"metadata", "name"})));
    });
    run::World world(base::system_clock().wall());
    for (const auto& document : documents) EXPECT_TRUE(world.put(document).ok()) << base::to_text(document);
    world.settle();
    return picture_in(world);
}

// What is foretold from the stored objects, before anybody has acted on the deed, is what happens then.
bool act(Live& live, const History& history, const Deed& deed, const std::string& story) {
    live.ask(deed.request);
    const Picture expected = foretold(live.dump(), history);
    live.settle();
    const Picture seen = picture_of(live.dump());
    EXPECT_EQ(seen, expected) << story << live.why();
    return seen == expected && !testing::Test::HasFailure();
}

void run_history(Live& live, uint64_t seed) {
    History history(seed);
    std::string story = fmt::format("seed {}:", seed);
    for (int i = 0; i < kDeeds + 2; ++i) {
        const Deed deed = i < 2 ? History::make_node(i == 0 ? "n-b" : "n-a", 8) : history.next(live.dump());
        story += "\n" + deed.what;
        if (!act(live, history, deed, story)) return;
    }
    live.clear();
}

TEST(WhatifAndLive, DoTheSame) {
    Live live;
    each_seed(200, [&](uint64_t seed) { run_history(live, seed); });
}

}  // namespace
}  // namespace berth::whatif
