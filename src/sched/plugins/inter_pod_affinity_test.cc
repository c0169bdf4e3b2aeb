#include "base/json_view.h"
#include "sched/plugins/test_near.h"

namespace berth::sched::plugins {
namespace {

std::string text(std::string_view from) {
    return std::string(from);
}

// Zone a: n1, n2; zone b: n3; n4 has no zone.
class Affinity : public testing::Test, protected NearTable {
protected:
    void SetUp() override {
        zoned("n1", "a");
        zoned("n2", "a");
        zoned("n3", "b");
        node("n4", {{text(kHost), "n4"}});
    }
    static model::PodSpec web() { return spec_of({{"app", "web"}}); }
    static model::PodSpec db() { return spec_of({{"app", "db"}}); }
    static model::PodSpec near(model::PodSpec spec, std::string_view selector, std::string_view key = kZone) {
        spec.affinity.push_back(term(selector, key, spec.ns));
        return spec;
    }
    static model::PodSpec far_from(model::PodSpec spec, std::string_view selector, std::string_view key = kZone) {
        spec.anti_affinity.push_back(term(selector, key, spec.ns));
        return spec;
    }
    static Reasons reasons(std::string_view n1, std::string_view n2, std::string_view n3, std::string_view n4) {
        return {{"n1", text(n1)}, {"n2", text(n2)}, {"n3", text(n3)}, {"n4", text(n4)}};
    }
    static Scores scored(int64_t n1, int64_t n2, int64_t n3, int64_t n4) {
        return {{"n1", n1}, {"n2", n2}, {"n3", n3}, {"n4", n4}};
    }
};

TEST_F(Affinity, GoesWhereTheOtherIs) {
    place("db", "n1", db());
    EXPECT_EQ(affinity_strikes(near(web(), "app=db")), reasons("", "", kFar, kFar));
    EXPECT_EQ(affinity_strikes(near(web(), "app=db", kHost)), reasons("", kFar, kFar, kFar));
    ledger.remove_pod("uid-db");
    EXPECT_EQ(affinity_strikes(near(web(), "app=db")), reasons(kFar, kFar, kFar, kFar));
}

TEST_F(Affinity, OnePodMustMatchAllTerms) {
    place("db", "n1", db());
    place("cache", "n2", spec_of({{"tier", "cache"}}));
    const auto both = near(near(web(), "app=db"), "tier=cache");
    EXPECT_EQ(affinity_strikes(both), reasons(kFar, kFar, kFar, kFar));
    place("both", "n3", spec_of({{"app", "db"}, {"tier", "cache"}}));
    EXPECT_EQ(affinity_strikes(both), reasons(kFar, kFar, "", kFar));
}

// The pods that all terms speak of are looked up once, however many terms name the key.
TEST_F(Affinity, ManyTermsAreLookedUpOnce) {
    place("db", "n1", db());
    model::PodSpec poison = web();
    for (int i = 0; i < 1000; ++i) poison = near(std::move(poison), "n=" + std::to_string(i));
    uint64_t looks = 0;
    Ask asked = ask(poison);
    asked.looks = &looks;
    EXPECT_EQ(strikes(asked, *affinity_filter_), reasons(kFar, kFar, kFar, kFar));
    EXPECT_GE(looks, 1000U);
    EXPECT_LE(looks, 100 * 1000U);
}

// A key that no node has closes every row to who must be near, and none to who shuns; nothing is counted for it.
TEST_F(Affinity, AKeyThatNoNodeHasCostsNoCounting) {
    place("web", "n1", web());
    model::PodSpec together = web(), apart = web(), inclined = web();
    for (int i = 0; i < 1000; ++i) {
        const std::string key = "absent-" + std::to_string(i);
        together.affinity.push_back(term("app=web", key));
        apart.anti_affinity.push_back(term("app=web", key));
        inclined.preferred_affinity.push_back({1, term("app=web", key)});
    }
    const auto before = ledger.near().sizes();
    EXPECT_EQ(affinity_strikes(together), reasons(kFar, kFar, kFar, kFar));
    EXPECT_EQ(affinity_strikes(apart), reasons("", "", "", ""));
    EXPECT_EQ(affinity_scores(inclined), scored(0, 0, 0, 0));
    const auto after = ledger.near().sizes();
    EXPECT_EQ(after.tallies, before.tallies);
    EXPECT_EQ(after.topology, before.topology);
    node("n1", {{text(kHost), "n1"}, {"absent-7", "x"}});
    EXPECT_EQ(affinity_strikes(apart), reasons(kNear, "", "", ""));
}

TEST_F(Affinity, TheFirstOfItsOwnGroupMayGoWhereTheLabelIs) {
    EXPECT_EQ(affinity_strikes(near(web(), "app=web")), reasons("", "", "", kFar));
    place("other", "n4", web());  // on a node without the zone label: still the first
    EXPECT_EQ(affinity_strikes(near(web(), "app=web")), reasons("", "", "", kFar));
    place("web", "n3", web());
    EXPECT_EQ(affinity_strikes(near(web(), "app=web")), reasons(kFar, kFar, "", kFar));
    // It has to match all of its terms itself.
    EXPECT_EQ(affinity_strikes(near(near(web(), "app=web,no=no"), "app=web")), reasons(kFar, kFar, kFar, kFar));
}

TEST_F(Affinity, AffinityRefusalsCannotBeCuredByEviction) {
    place("web", "n1", far_from(web(), "app=web"));
    const auto unresolvable = [&](const model::PodSpec& spec, const std::string& node) {
        Strikes strikes(ledger, 0, static_cast<Row>(ledger.rows()));
        affinity_filter_->strike(ask(spec), ledger, strikes);
        return strikes.why(ledger.row_of(node))->unresolvable;
    };
    EXPECT_TRUE(unresolvable(near(db(), "app=db,x=y"), "n1"));
    EXPECT_FALSE(unresolvable(far_from(db(), "app=web"), "n1"));
    EXPECT_FALSE(unresolvable(web(), "n1"));
}

TEST_F(Affinity, ShunsAndIsShunned) {
    place("web", "n1", web());
    EXPECT_EQ(affinity_strikes(far_from(db(), "app=web")), reasons(kNear, kNear, "", ""));
    EXPECT_EQ(affinity_strikes(far_from(db(), "app=web", kHost)), reasons(kNear, "", "", ""));
    place("hermit", "n3", far_from(spec_of({{"app", "hermit"}}), "app=web"));
    EXPECT_EQ(affinity_strikes(web()), reasons("", "", kShunned, ""));
    EXPECT_EQ(affinity_strikes(db()), reasons("", "", "", ""));
    EXPECT_EQ(affinity_strikes(far_from(web(), "app=web")), reasons(kNear, kNear, kShunned, ""));
    ledger.remove_pod("uid-hermit");
    EXPECT_EQ(affinity_strikes(web()), reasons("", "", "", ""));
}

TEST_F(Affinity, CountsTerminatingPods) {
    place("web", "n1", far_from(web(), "app=web"), true);
    EXPECT_EQ(affinity_strikes(near(db(), "app=web"))["n2"], "");
    EXPECT_EQ(affinity_strikes(web()), reasons(kShunned, kShunned, "", ""));
}

TEST_F(Affinity, EmptyAndAbsentSelectors) {
    place("db", "n1", db());
    EXPECT_EQ(affinity_strikes(far_from(web(), "")), reasons(kNear, kNear, "", ""));
    auto absent = far_from(web(), "");
    absent.anti_affinity[0].selector.reset();
    EXPECT_EQ(affinity_strikes(absent), reasons("", "", "", ""));
}

TEST_F(Affinity, Namespaces) {
    place("db", "n1", spec_of({{"app", "db"}}, "prod"));
    auto spec = near(web(), "app=db");
    EXPECT_EQ(affinity_strikes(spec)["n1"], kFar);
    spec.affinity[0].namespaces = {"other", "prod"};
    EXPECT_EQ(affinity_strikes(spec)["n1"], "");
    spec.affinity[0].namespaces.clear();
    spec.affinity[0].ns_selector = chosen("env=prod");
    EXPECT_EQ(affinity_strikes(spec)["n1"], kFar);
    ledger.put(model::Namespace{"prod", {{"env", "prod"}}});
    EXPECT_EQ(affinity_strikes(spec)["n1"], "");
    ledger.put(model::Namespace{"prod", {{"env", "test"}}});
    EXPECT_EQ(affinity_strikes(spec)["n1"], kFar);
    ledger.put(model::Namespace{"prod", {{"env", "prod"}}});
    EXPECT_EQ(affinity_strikes(spec)["n1"], "");
    ledger.remove_namespace("prod");
    EXPECT_EQ(affinity_strikes(spec)["n1"], kFar);
    spec.affinity[0].ns_selector = chosen("");
    EXPECT_EQ(affinity_strikes(spec)["n1"], "");
}

TEST_F(Affinity, NamespacesOfHeldTerms) {
    auto hermit = spec_of({{"app", "hermit"}}, "prod");
    hermit.anti_affinity = {term("app=web", kZone)};
    hermit.anti_affinity[0].namespaces.clear();
    hermit.anti_affinity[0].ns_selector = chosen("env=test");
    place("hermit", "n1", hermit);
    EXPECT_EQ(affinity_strikes(web())["n1"], "");
    ledger.put(model::Namespace{"default", {{"env", "test"}}});
    EXPECT_EQ(affinity_strikes(web())["n1"], kShunned);
    ledger.put(model::Namespace{"default", {}});
    EXPECT_EQ(affinity_strikes(web())["n1"], "");
}

TEST_F(Affinity, ChangedLabelsMovePodsAndTerms) {
    place("hermit", "n1", far_from(spec_of({{"app", "hermit"}}), "app=web"));
    EXPECT_EQ(affinity_strikes(web()), reasons(kShunned, kShunned, "", ""));
    EXPECT_EQ(affinity_strikes(near(db(), "app=hermit")), reasons("", "", kFar, kFar));
    zoned("n1", "b");
    EXPECT_EQ(affinity_strikes(web()), reasons(kShunned, "", kShunned, ""));
    EXPECT_EQ(affinity_strikes(near(db(), "app=hermit")), reasons("", kFar, "", kFar));
}

// 100 x ((sum - min) / (max - min)).
TEST_F(Affinity, ScoresPreferences) {
    place("db1", "n1", db());
    place("db2", "n1", db());
    place("cache", "n3", spec_of({{"app", "cache"}}));
    auto spec = web();
    spec.preferred_affinity = {{5, term("app=db", kZone)}};
    EXPECT_EQ(affinity_scores(spec), scored(100, 100, 0, 0));
    spec.preferred_affinity.push_back({3, term("app=cache", kHost)});
    EXPECT_EQ(affinity_scores(spec), scored(100, 100, 30, 0));  // 10, 10, 3, 0
    spec.preferred_anti_affinity = {{4, term("app=db", kHost)}};
    EXPECT_EQ(affinity_scores(spec), scored(20, 100, 30, 0));  // 10 - 8, 10, 3, 0
}

TEST_F(Affinity, ScoresWhatPlacedPodsHold) {
    place("fan", "n1", near(spec_of({{"app", "fan"}}), "app=web", kHost));  // required: 1
    auto keen = spec_of({{"app", "keen"}});
    keen.preferred_affinity = {{10, term("app=web", kZone)}};
    place("keen", "n3", keen);
    auto shy = spec_of({{"app", "shy"}});
    shy.preferred_anti_affinity = {{4, term("app=web", kHost)}};
    place("shy", "n2", shy);
    EXPECT_EQ(affinity_scores(web()), scored(35, 0, 100, 28));  // 1, -4, 10, 0 over 14
    EXPECT_EQ(affinity_scores(db()), scored(0, 0, 0, 0));
    const auto none = pod_affinity_scorer({.required_affinity = 0});
    EXPECT_EQ(scores(ask(*std::make_shared<model::PodSpec>(web())), *none), scored(28, 0, 100, 28));
}

TEST_F(Affinity, IgnoresHeldPreferencesWhenToldTo) {
    auto keen = spec_of({{"app", "keen"}});
    keen.preferred_affinity = {{10, term("app=web", kZone)}};
    place("keen", "n3", keen);
    const auto scorer = pod_affinity_scorer({.required_affinity = 1, .ignore_held_when_indifferent = true});
    auto spec = web();
    EXPECT_EQ(scores(ask(spec), *scorer), scored(0, 0, 0, 0));
    spec.preferred_affinity = {{1, term("app=none", kZone)}};
    EXPECT_EQ(scores(ask(spec), *scorer), scored(0, 0, 100, 0));
}

TEST_F(Affinity, OwnersDoNotSeeTheirReservation) {
    const auto hermit = far_from(web(), "app=web", kHost);
    const auto r1 = reservation("r1", "n1", hermit);
    EXPECT_EQ(affinity_strikes(hermit), reasons(kNear, "", "", ""));
    EXPECT_EQ(affinity_strikes(web()), reasons(kShunned, "", "", ""));
    Ask owner = ask(hermit);
    owner.credits[ledger.row_of("n1")].matched = {ledger.find_reservation("uid-r1")};
    EXPECT_EQ(strikes(owner, *affinity_filter_), reasons("", "", "", ""));
    place_owner("o1", *r1, hermit);  // now the owner itself refuses the next
    EXPECT_EQ(strikes(owner, *affinity_filter_), reasons(kNear, "", "", ""));
    ledger.remove_reservation("uid-r1");
    EXPECT_EQ(affinity_strikes(web()), reasons(kShunned, "", "", ""));
    ledger.remove_pod("uid-o1");
    EXPECT_EQ(affinity_strikes(web()), reasons("", "", "", ""));
}

TEST_F(Affinity, MatchLabelKeysNarrowTheTerm) {
    base::JsonParser parser;
    const auto document = parser.parse(R"({"metadata":{"name":"p","labels":{"app":"web","version":"2","team":"x"}},
        "spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
            {"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"kubernetes.io/hostname",
             "matchLabelKeys":["version"],"mismatchLabelKeys":["team"]}]}}}})");
    const auto pod = model::read_pod(*document);
    ASSERT_TRUE(pod.ok());
    place("old", "n1", spec_of({{"app", "web"}, {"version", "1"}, {"team", "y"}}));
    place("ours", "n2", spec_of({{"app", "web"}, {"version", "2"}, {"team", "x"}}));
    place("theirs", "n3", spec_of({{"app", "web"}, {"version", "2"}, {"team", "y"}}));
    EXPECT_EQ(affinity_strikes(*pod->spec), reasons("", "", kNear, ""));
}

}  // namespace
}  // namespace berth::sched::plugins
