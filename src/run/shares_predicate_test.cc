#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/random.h"
#include "run/shares_scene.h"
#include "share/answer.h"

// The scheduler's predicate, which keeps its sums and solves when something has changed, against the offline answer,
// which computes everything from the objects.
namespace berth::run {
namespace {

using base::Random;

constexpr base::Time kNow{1'700'000'000'000'000'000};

Json object(const std::string& text) {
    auto read = base::parse_json(text);
    EXPECT_TRUE(read.ok()) << text;
    return read ? *read : Json();
}

// One node, a few namespaces and areas, each with pods of one size.
struct Town {
    explicit Town(Random& random) {
        const int64_t cpu = random.between(8, 60), memory = random.between(8, 60);
        objects.push_back(object(fmt::format(
            R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n1"}},"status":{{"allocatable":{{"cpu":"{}","memory":"{}Gi","pods":"1000"}}}}}})",
            cpu, memory)));
        const bool areas = random.chance(1, 3);
        if (areas) add_consumer("area", "", random, false);
        const int64_t count = random.between(1, 5);
        for (int64_t i = 0; i < count; ++i) {
            const std::string name(1, static_cast<char>('a' + i));
            if (random.chance(2, 3)) add_consumer(name, areas && random.chance(1, 2) ? "area" : "", random, true);
            if (random.chance(1, 6)) {
                objects.push_back(object(fmt::format(
                    R"({{"apiVersion":"v1","kind":"ResourceQuota","metadata":{{"name":"q","namespace":"{}"}},"spec":{{"hard":{{"{}":"{}"}}}}}})",
                    name, random.chance(1, 2) ? "requests.cpu" : "pods", random.between(0, 12))));
            }
            add_pods(i == 4 ? "kube-system" : name, cpu, random);
        }
    }

    void add_consumer(const std::string& name, const std::string& parent, Random& random, bool limits) {
        std::string spec = fmt::format(R"("weight":{})", random.between(0, 3));
        if (!parent.empty()) spec += fmt::format(R"(,"parent":"{}")", parent);
        if (random.chance(1, 2)) spec += fmt::format(R"(,"reserved":{{"cpu":"{}%"}})", random.between(0, 30));
        if (limits && random.chance(1, 3)) spec += fmt::format(R"(,"hard":{{"cpu":"{}"}})", random.between(1, 30));
        if (limits && random.chance(1, 4)) spec += fmt::format(R"(,"borrowingLimit":{{"cpu":"{}"}})", random.below(9));
        if (limits && random.chance(1, 4)) spec += fmt::format(R"(,"lendingLimit":{{"cpu":"{}"}})", random.below(9));
        if (limits && random.chance(1, 5)) spec += fmt::format(R"(,"request":{{"cpu":"{}"}})", random.below(20));
        objects.push_back(object(fmt::format(
            R"({{"apiVersion":"kuabe-arbitrator.incubator.k8s.io/v1","kind":"Consumer","metadata":{{"name":"{}"}},"spec":{{{}}}}})",
            name, spec)));
    }

    void add_pods(const std::string& ns, int64_t node_cpu, Random& random) {
        const int64_t cpu = random.between(1, 3), memory = random.between(0, 3);
        const int64_t count = random.between(0, 20);
        for (int64_t i = 0; i < count; ++i) {
            const bool runs = room + cpu <= node_cpu && random.chance(1, 3);
            if (runs) room += cpu;
            objects.push_back(object(fmt::format(
                R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p{0}","namespace":"{1}","creationTimestamp":"2023-11-14T22:13:20Z"}},)"
                R"("spec":{{"schedulerName":"berth",{2}"containers":[{{"name":"a","resources":{{"requests":{{"cpu":"{3}","memory":"{4}Gi"}}}}}}]}}}})",
                i, ns, runs ? R"("nodeName":"n1",)" : "", cpu, memory)));
        }
    }

    std::vector<Json> objects;
    int64_t room = 0;
};

share::Settings settings_of(Random& random) {
    share::Settings settings;
    settings.now = kNow;
    settings.spread = random.chance(3, 4);
    settings.policy = random.chance(1, 5) ? share::Policy::Floor : share::Policy::Surplus;
    return settings;
}

TEST(SharesPredicate, TheSchedulerLetsStartWhomTheOfflineAnswerDoes) {
    const char* given = std::getenv("BERTH_SEED");
    const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
    size_t refusals = 0;
    for (uint64_t seed = first; seed < first + (given != nullptr ? 1 : 250); ++seed) {
        SCOPED_TRACE(testing::Message() << "BERTH_SEED=" << seed);
        Random random(seed);
        const Town town(random);
        const share::Settings settings = settings_of(random);
        SharesScene gathered(kNow);
        ClusterOptions options;
        options.shares = settings;
        World world(kNow, options);
        for (const auto& one : town.objects) {
            ASSERT_TRUE(gathered.put(one).ok());
            ASSERT_TRUE(world.put(one).ok());
        }
        const share::Scene scene = gathered.take(false);
        const share::Answer answer = share::answer(scene, settings);
        std::set<std::string> placed;
        for (const auto& placement : world.settle()) {
            if (!placement.node.empty()) placed.insert(placement.ns + "/" + placement.name);
        }
        const bool overused = std::any_of(answer.accounts.begin(), answer.accounts.end(),
                                          [](const auto& account) { return account.overused; });
        std::set<std::string> admitted;
        for (const auto& admission : answer.admissions) {
            if (admission.admitted) admitted.insert(scene.pods[admission.pod].full_name());
            refusals += !admission.admitted;
        }
        if (!overused) {
            EXPECT_EQ(placed, admitted);
        }
        for (const auto& name : placed) EXPECT_TRUE(admitted.contains(name)) << name;
        if (HasFailure()) return;
    }
    if (given == nullptr) {
        EXPECT_GT(refusals, 200u);
    }
}

}  // namespace
}  // namespace berth::run
