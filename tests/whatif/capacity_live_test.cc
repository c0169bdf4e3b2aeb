// How many more fit, and how many nodes are needed, as `berth whatif` says, is what comes of creating them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/capacity.h"
#include "cli/question.h"
#include "history.h"
#include "live.h"
#include "settings.h"

namespace berth::whatif {
namespace {

constexpr int kSteps = 8;

cli::Question question_of(std::vector<Json> documents) {
    cli::Question out;
    out.now = base::system_clock().wall();
    out.options.preempts = false;
    for (auto& document : documents) out.documents.emplace_back("live", std::move(document));
    return out;
}

// The same cluster for the same seed.
std::string play(Live& live, uint64_t seed) {
    History history(seed);
    std::string story = fmt::format("seed {}:", seed);
    for (int i = 0; i < kSteps + 2; ++i) {
        const Deed deed = i < 2 ? History::make_node(i == 0 ? "n-b" : "n-a", 8) : history.next(live.dump());
        story += "\n" + deed.what;
        live.ask(deed.request);
        live.settle();
    }
    return story;
}

Json wish(base::Random& random) {
    const JsonObject requests{{"cpu", std::to_string(random.between(1, 4))}, {"memory", "1Gi"}};
    const JsonObject container{{"name", "c"}, {"image", "i"}, {"resources", JsonObject{{"requests", requests}}}};
    JsonObject spec{{"schedulerName", "berth"}, {"containers", JsonArray{container}}};
    if (random.chance(1, 3)) {
        const JsonObject term{{"topologyKey", "kubernetes.io/hostname"},
                              {"labelSelector", JsonObject{{"matchLabels", JsonObject{{"app", "a"}}}}}};
        spec["affinity"] = JsonObject{
            {"podAntiAffinity", JsonObject{{"requiredDuringSchedulingIgnoredDuringExecution", JsonArray{term}}}}};
    }
    return JsonObject{{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", JsonObject{{"name", "wish"},
                                              {"namespace", "default"},
                                              {"labels", JsonObject{{"app", random.chance(1, 2) ? "a" : "other"}}}}},
                      {"spec", spec}};
}

void create(Live& live, const Json& pod, int64_t count) {
    for (int64_t i = 1; i <= count; ++i) {
        Json copy = pod;
        base::object_at(copy, {"metadata"})["name"] = fmt::format("wish-{}", i);
        live.ask({"POST", kPods, base::to_text(copy)});
    }
    live.settle();
}

int64_t placed(const Live& live) {
    const auto all = live.dump();
    return std::count_if(all.begin(), all.end(), [](const Json& document) {
        return base::find_string(document, {"kind"}) == "Pod" &&
               base::find_string(document, {"metadata", "name"}).starts_with("wish-") &&
               !base::find_string(document, {"spec", "nodeName"}).empty();
    });
}

void check_fit(Live& live, uint64_t seed) {
    const std::string story = play(live, seed);
    base::Random random(seed);
    const Json pod = wish(random);
    auto loaded = cli::load(question_of(live.dump()));
    ASSERT_TRUE(loaded) << loaded.error().message;
    loaded->world->settle();
    const auto found = cli::fit(*loaded->world, pod, 12);
    ASSERT_TRUE(found) << found.error().message;
    create(live, pod, 12);
    EXPECT_EQ(placed(live), found->count) << story << "\n" << base::to_text(pod) << live.why();
    live.clear();
}

void add_nodes(Live& live, int64_t count) {
    for (int64_t i = 1; i <= count; ++i) live.ask(History::make_node(fmt::format("added-{}", i), 4).request);
    live.settle();
}

// How many nodes `berth whatif --need` says this cluster lacks for so many pods.
Result<cli::Need> need_of(const Live& live, const Json& pod, int64_t count) {
    const cli::Question question = question_of(live.dump());
    return cli::need([&](int64_t nodes) -> Result<cli::Trial> {
        std::vector<cli::Question::Document> more;
        for (int64_t i = 1; i <= nodes; ++i) {
            more.emplace_back("", *base::parse_json(History::make_node(fmt::format("added-{}", i), 4).request.body));
        }
        for (auto& [file, document] : more) document.as_object()["kind"] = "Node";
        for (int64_t i = 1; i <= count; ++i) {
            Json copy = pod;
            base::object_at(copy, {"metadata"})["name"] = fmt::format("wish-{}", i);
            more.emplace_back("", std::move(copy));
        }
        cli::Loaded loaded = TRY(cli::load(question, more));
        cli::Trial trial{std::move(loaded.world), {}, count, 0};
        trial.answers = trial.world->settle();
        for (const auto& answer : trial.answers) {
            trial.refused += loaded.added.contains(answer.ns + "/" + answer.name) && answer.node.empty();
        }
        return trial;
    });
}

// Each check asks the cluster that it then changes: the victims of a preemption are not the same each time a history is
// played.
void check_need(Live& live, uint64_t seed) {
    const auto told = [&](const std::string& story, const Json& pod, int64_t count, const cli::Need& found) {
        return fmt::format("{}\n{} of {}\nneed {}{}", story, count, base::to_text(pod), found.nodes, live.why());
    };
    base::Random random(seed);
    const Json pod = wish(random);
    const int64_t count = random.between(1, 6);
    const std::string story = play(live, seed);
    auto found = need_of(live, pod, count);
    ASSERT_TRUE(found) << found.error().message;
    if (found->nodes > 0) {  // one less is not enough
        add_nodes(live, found->nodes - 1);
        create(live, pod, count);
        EXPECT_LT(placed(live), count) << told(story, pod, count, *found);
        live.clear();
        play(live, seed);
        found = need_of(live, pod, count);
        ASSERT_TRUE(found) << found.error().message;
    }
    add_nodes(live, found->nodes);
    create(live, pod, count);
    EXPECT_EQ(placed(live) == count, found->enough) << told(story, pod, count, *found);
    live.clear();
}

TEST(Capacity, FitSaysHowManyAreThenPlaced) {
    Live live;
    each_seed(200, [&](uint64_t seed) { check_fit(live, seed); });
}

TEST(Capacity, NeedSaysHowManyNodesAreThenEnough) {
    Live live;
    each_seed(200, [&](uint64_t seed) { check_need(live, seed); });
}

}  // namespace
}  // namespace berth::whatif
