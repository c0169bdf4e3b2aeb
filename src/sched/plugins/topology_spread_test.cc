#include "sched/plugins/test_near.h"

namespace berth::sched::plugins {
namespace {

std::string text(std::string_view from) {
    return std::string(from);
}

// Zone a: n1, n2; zone b: n3.
class Spread : public testing::Test, protected NearTable {
protected:
    void SetUp() override {
        zoned("n1", "a");
        zoned("n2", "a");
        zoned("n3", "b");
    }
    void web(const std::string& name, const std::string& node, bool terminating = false) {
        place(name, node, spec_of({{"app", "web"}}), terminating);
    }
    static model::PodSpec asking(std::vector<model::SpreadConstraint> constraints) {
        model::PodSpec out = spec_of({{"app", "web"}});
        out.spread = std::move(constraints);
        return out;
    }
    static Reasons reasons(std::string_view n1, std::string_view n2, std::string_view n3) {
        return {{"n1", text(n1)}, {"n2", text(n2)}, {"n3", text(n3)}};
    }
};

TEST_F(Spread, ClosesDomainsAboveTheSkew) {
    web("p1", "n1");
    EXPECT_EQ(spread_strikes(asking({spread(1, kZone, "app=web")})), reasons(kSkewed, kSkewed, ""));
    EXPECT_EQ(spread_strikes(asking({spread(2, kZone, "app=web")})), reasons("", "", ""));
    EXPECT_EQ(spread_strikes(asking({spread(1, kHost, "app=web")})), reasons(kSkewed, "", ""));
    web("p2", "n3");
    EXPECT_EQ(spread_strikes(asking({spread(1, kZone, "app=web")})), reasons("", "", ""));
    ledger.remove_pod("uid-p1");
    EXPECT_EQ(spread_strikes(asking({spread(1, kZone, "app=web")})), reasons("", "", kSkewed));
}

TEST_F(Spread, RefusalsSayWhetherEvictionsHelp) {
    web("p1", "n1");
    node("n4", {{text(kHost), "n4"}});
    const model::PodSpec spec = asking({spread(1, kZone, "app=web")});
    Strikes strikes(ledger, 0, static_cast<Row>(ledger.rows()));
    spread_filter_->strike(ask(spec), ledger, strikes);
    EXPECT_FALSE(strikes.why(ledger.row_of("n1"))->unresolvable);
    EXPECT_TRUE(strikes.why(ledger.row_of("n4"))->unresolvable);
    EXPECT_EQ(strikes.why(ledger.row_of("n4"))->reasons.front(), kUnlabelled);
}

TEST_F(Spread, APodThatItsOwnSelectorMissesAddsNothing) {
    web("p1", "n1");
    model::PodSpec other = asking({spread(1, kZone, "app=web")});
    other.labels = {{"app", "db"}};
    EXPECT_EQ(spread_strikes(other), reasons("", "", ""));
    web("p2", "n2");
    EXPECT_EQ(spread_strikes(other), reasons(kSkewed, kSkewed, ""));
}

TEST_F(Spread, CountsOnlyItsOwnNamespaceAndLivingPods) {
    place("p1", "n1", spec_of({{"app", "web"}}, "elsewhere"));
    web("p2", "n1", true);
    EXPECT_EQ(spread_strikes(asking({spread(1, kZone, "app=web")})), reasons("", "", ""));
    web("p3", "n1");
    EXPECT_EQ(spread_strikes(asking({spread(1, kZone, "app=web")})), reasons(kSkewed, kSkewed, ""));
    web("p3", "n1", true);
    EXPECT_EQ(spread_strikes(asking({spread(1, kZone, "app=web")})), reasons("", "", ""));
}

TEST_F(Spread, FewerDomainsThanMinDomainsCountAsEmpty) {
    web("p1", "n1");
    web("p2", "n3");
    auto constraint = spread(1, kZone, "app=web");
    constraint.min_domains = 2;
    EXPECT_EQ(spread_strikes(asking({constraint})), reasons("", "", ""));
    constraint.min_domains = 3;
    EXPECT_EQ(spread_strikes(asking({constraint})), reasons(kSkewed, kSkewed, kSkewed));
}

TEST_F(Spread, AnEmptySelectorCountsNobodyButMatchesThePodItself) {
    for (int i = 0; i < 5; ++i) web("p" + std::to_string(i), "n1");
    EXPECT_EQ(spread_strikes(asking({spread(1, kZone, "")})), reasons("", "", ""));
    EXPECT_EQ(spread_strikes(asking({spread(0, kZone, "")})), reasons(kSkewed, kSkewed, kSkewed));
    auto absent = spread(0, kZone, "");
    absent.selector.reset();
    EXPECT_EQ(spread_strikes(asking({absent})), reasons("", "", ""));
}

TEST_F(Spread, ANodeThatMissesOneOfTheKeysCountsForNone) {
    node("n4", {{text(kZone), "c"}});
    web("p1", "n1");
    web("p2", "n3");
    const auto both = asking({spread(1, kZone, "app=web"), spread(5, kHost, "app=web")});
    EXPECT_EQ(spread_strikes(both)["n1"], "");  // zone c does not count: its node has no hostname
    EXPECT_EQ(spread_strikes(both)["n4"], kUnlabelled);
    EXPECT_EQ(spread_strikes(asking({spread(1, kZone, "app=web")}))["n1"], kSkewed);
}

TEST_F(Spread, NodeAffinityPolicyDecidesWhichNodesTakePart) {
    node("n4", {{text(kZone), "c"}, {"disk", "ssd"}});
    node("n5", {{text(kZone), "d"}, {"disk", "ssd"}});
    web("p1", "n4");
    web("p2", "n5");
    auto spec = asking({spread(1, kZone, "app=web")});
    spec.node_selector = {{"disk", "ssd"}};
    EXPECT_EQ(spread_strikes(spec)["n4"], "");
    spec.spread[0].honor_affinity = false;  // now zones a and b are the least
    EXPECT_EQ(spread_strikes(spec)["n4"], kSkewed);
    spec.node_selector = {};
    spec.spread[0].honor_affinity = true;
    spec.required_nodes = {{{{"disk", "In", {"ssd"}}}, {}}};
    EXPECT_EQ(spread_strikes(spec)["n4"], "");
}

TEST_F(Spread, NodeTaintsPolicyDecidesWhichNodesTakePart) {
    node("n4", {{text(kZone), "c"}}, {{"gpu", "", "NoSchedule"}});
    web("p1", "n1");
    web("p2", "n3");
    auto spec = asking({spread(1, kZone, "app=web")});
    EXPECT_EQ(spread_strikes(spec)["n1"], kSkewed);
    spec.spread[0].honor_taints = true;
    EXPECT_EQ(spread_strikes(spec)["n1"], "");
    spec.tolerations = {{"gpu", "Exists", "", "", std::nullopt}};
    EXPECT_EQ(spread_strikes(spec)["n1"], kSkewed);
    node("n4", {{text(kZone), "c"}}, {{"gpu", "", "PreferNoSchedule"}});
    spec.tolerations = {};
    EXPECT_EQ(spread_strikes(spec)["n1"], kSkewed);
}

TEST_F(Spread, ChangedLabelsMoveThePods) {
    web("p1", "n2");
    const auto spec = asking({spread(1, kZone, "app=web")});
    EXPECT_EQ(spread_strikes(spec), reasons(kSkewed, kSkewed, ""));
    zoned("n2", "b");
    EXPECT_EQ(spread_strikes(spec), reasons("", kSkewed, kSkewed));
    zoned("n2", "c");
    EXPECT_EQ(spread_strikes(spec), reasons("", kSkewed, ""));
    ledger.remove_node("n2");
    EXPECT_EQ(spread_strikes(spec), (Reasons{{"n1", ""}, {"n3", ""}}));
    zoned("n2", "a");  // the pod was waiting for its node
    EXPECT_EQ(spread_strikes(spec), reasons(kSkewed, kSkewed, ""));
}

// ln(3 domains + 2) = 1.609, ln(4) = 1.386.
TEST_F(Spread, ScoresByZone) {
    web("p1", "n1");
    web("p2", "n1");
    web("p3", "n3");
    // Two zones: 2 x 1.386 = 2.77 -> 3 and 1.386 -> 1; 100 x (3 + 1 - cost) / 3.
    EXPECT_EQ(spread_scores(asking({spread(1, kZone, "app=web", false)})),
              (Scores{{"n1", 33}, {"n2", 33}, {"n3", 100}}));
    // maxSkew 3 adds 2: 4.77 -> 5 and 3.386 -> 3; 100 x (5 + 3 - cost) / 5.
    EXPECT_EQ(spread_scores(asking({spread(3, kZone, "app=web", false)})),
              (Scores{{"n1", 60}, {"n2", 60}, {"n3", 100}}));
    // Each of three nodes for itself: 3.219 -> 3, 0, 1.609 -> 2; 100 x (3 - cost) / 3.
    EXPECT_EQ(spread_scores(asking({spread(1, kHost, "app=web", false)})),
              (Scores{{"n1", 0}, {"n2", 100}, {"n3", 33}}));
}

TEST_F(Spread, NothingCountedScoresFullAndNoConstraintScoresNothing) {
    EXPECT_EQ(spread_scores(asking({spread(1, kZone, "app=web", false)})),
              (Scores{{"n1", 100}, {"n2", 100}, {"n3", 100}}));
    EXPECT_EQ(spread_scores(asking({spread(1, kZone, "app=web")})), (Scores{{"n1", 0}, {"n2", 0}, {"n3", 0}}));
}

TEST_F(Spread, ANodeWithoutTheLabelScoresNothing) {
    node("n4", {{text(kHost), "n4"}});
    web("p1", "n4");
    EXPECT_EQ(spread_scores(asking({spread(1, kZone, "app=web", false)})),
              (Scores{{"n1", 100}, {"n2", 100}, {"n3", 100}, {"n4", 0}}));
}

// System defaults: hostname skew 3, zone skew 5; by the Services that select the pod.
TEST_F(Spread, DefaultsFollowServices) {
    web("p1", "n1");
    EXPECT_EQ(spread_scores(asking({})), (Scores{{"n1", 0}, {"n2", 0}, {"n3", 0}}));
    ledger.put(model::Workload{model::WorkloadKind::Service, "default", "web", chosen("app=web")});
    ledger.put(model::Workload{model::WorkloadKind::Service, "default", "db", chosen("app=db")});
    // n1: 1 x ln 5 + 2 + 1 x ln 4 + 4 = 8.996 -> 9; n2: 2 + 5.386 -> 7; n3: 6. 100 x (9 + 6 - cost) / 9.
    EXPECT_EQ(spread_scores(asking({})), (Scores{{"n1", 66}, {"n2", 88}, {"n3", 100}}));
    ledger.remove_workload(model::WorkloadKind::Service, "default", "web");
    EXPECT_EQ(spread_scores(asking({})), (Scores{{"n1", 0}, {"n2", 0}, {"n3", 0}}));
}

TEST_F(Spread, DefaultsFollowTheController) {
    web("p1", "n1");
    model::Pod pod = NearTable::pod("asking", asking({}));
    pod.meta.owners = {{"apps/v1", "ReplicaSet", "web-1", "u", true}};
    Ask ask = this->ask(*pod.spec);
    ask.pod = &pod;
    EXPECT_EQ(scores(ask, *spread_scorer_)["n3"], 0);
    ledger.put(model::Workload{model::WorkloadKind::ReplicaSet, "default", "web-1", chosen("app in (web)")});
    EXPECT_EQ(scores(ask, *spread_scorer_), (Scores{{"n1", 66}, {"n2", 88}, {"n3", 100}}));
    pod.meta.owners[0].api_version = "extensions/v1beta1";
    EXPECT_EQ(scores(ask, *spread_scorer_)["n3"], 0);
    pod.meta.owners = {{"v1", "ReplicationController", "rc", "u", true}};
    ledger.put(model::Workload{model::WorkloadKind::ReplicationController, "default", "rc", chosen("app=web")});
    EXPECT_EQ(scores(ask, *spread_scorer_)["n1"], 66);
    pod.meta.owners = {{"apps/v1", "StatefulSet", "ss", "u", true}};
    ledger.put(model::Workload{model::WorkloadKind::StatefulSet, "default", "ss", chosen("app=web,tier=x")});
    EXPECT_EQ(scores(ask, *spread_scorer_)["n1"], 100);  // nobody has that tier: all cost 6
}

// Under the defaults a node without a zone still spreads by hostname; it is one more domain of the zones.
TEST_F(Spread, DefaultsTakeNodesWithoutAZone) {
    node("n4", {{text(kHost), "n4"}});
    ledger.put(model::Workload{model::WorkloadKind::Service, "default", "web", chosen("app=web")});
    web("p1", "n1");
    // 4 nodes, 3 zones: n1 1.79 + 2 + 1.609 + 4 = 9.4 -> 9; n2 7.609 -> 8; n3 6; n4 2. 100 x (9 + 2 - cost) / 9.
    EXPECT_EQ(spread_scores(asking({})), (Scores{{"n1", 22}, {"n2", 33}, {"n3", 55}, {"n4", 100}}));
}

TEST_F(Spread, ReservationsCountUntilTheyHaveOwners) {
    const auto spec = asking({spread(1, kZone, "app=web")});
    const auto r1 = reservation("r1", "n1", spec_of({{"app", "web"}}));
    EXPECT_EQ(spread_strikes(spec), reasons(kSkewed, kSkewed, ""));
    place_owner("o1", *r1, spec_of({{"app", "other"}}));
    EXPECT_EQ(spread_strikes(spec), reasons("", "", ""));
    ledger.remove_pod("uid-o1");
    EXPECT_EQ(spread_strikes(spec), reasons(kSkewed, kSkewed, ""));
    Ask owner = ask(spec);
    owner.credits[ledger.row_of("n1")].matched = {ledger.find_reservation("uid-r1")};
    EXPECT_EQ(strikes(owner, *spread_filter_), reasons("", "", ""));
    ledger.remove_reservation("uid-r1");
    EXPECT_EQ(spread_strikes(spec), reasons("", "", ""));
}

// On another API server the template may change while the reservation holds its room.
TEST_F(Spread, AReservationCountsByItsTemplateOfNow) {
    const auto spec = asking({spread(1, kZone, "app=web")});
    auto changed = *reservation("r1", "n1", spec_of({{"app", "other"}}));
    EXPECT_EQ(spread_strikes(spec), reasons("", "", ""));
    changed.spec = std::make_shared<model::PodSpec>(spec_of({{"app", "web"}}));
    ++changed.meta.revision;
    ledger.put(std::make_shared<const model::Reservation>(changed));
    EXPECT_EQ(spread_strikes(spec), reasons(kSkewed, kSkewed, ""));
}

TEST_F(Spread, MemoryStaysBounded) {
    for (int i = 0; i < 6000; ++i) {
        const std::string name = "app-" + std::to_string(i);
        auto spec = spec_of({{"app", name}});
        spec.spread = {spread(1, kZone, "app=" + name)};
        spec.anti_affinity = {term("app=" + name, kHost)};
        spread_strikes(spec);
        place(name, "n1", spec);
        ledger.remove_pod("uid-" + name);
    }
    const auto sizes = ledger.near().sizes();
    EXPECT_LE(sizes.groups, 300u);
    EXPECT_LE(sizes.held, 300u);
    EXPECT_LE(sizes.tallies, 4097u);
    EXPECT_LE(sizes.topology, 70u);
}

// However many keys a pod names: one that no node has closes every row, and nothing is counted for the others.
TEST_F(Spread, AKeyThatNoNodeHasCostsNoCounting) {
    web("p1", "n1");
    std::vector<model::SpreadConstraint> constraints{spread(1, kZone, "app=web")};
    for (int i = 0; i < 1000; ++i) constraints.push_back(spread(1, "absent-" + std::to_string(i), "app=web"));
    const auto before = ledger.near().sizes();
    EXPECT_EQ(spread_strikes(asking(constraints)), reasons(kUnlabelled, kUnlabelled, kUnlabelled));
    const model::PodSpec poison = asking(constraints);
    const auto all = spread_filter_->closed_domains(ask(poison), ledger);
    ASSERT_EQ(all->size(), 1U);
    for (Row row = 0; row < ledger.rows(); ++row) EXPECT_TRUE(all->front().closes(row));
    const auto after = ledger.near().sizes();
    EXPECT_EQ(after.tallies, before.tallies);
    EXPECT_LE(after.topology, before.topology + 2);
}

// Rows that others have closed already are not asked for.
TEST_F(Spread, NothingIsCountedForClosedRows) {
    const model::PodSpec spec = asking({spread(1, kZone, "app=web")});
    Strikes strikes(ledger, 0, static_cast<Row>(ledger.rows()));
    const auto other = strikes.refusal(PluginId::NodeName, {"no"}, false);
    strikes.each_open([&](Row row) { strikes.strike(row, other); });
    spread_filter_->strike(ask(spec), ledger, strikes);
    EXPECT_EQ(ledger.near().sizes().tallies, 0U);
}

}  // namespace
}  // namespace berth::sched::plugins
