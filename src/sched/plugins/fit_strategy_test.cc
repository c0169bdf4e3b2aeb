#include "sched/plugins/registry.h"
#include "sched/table_test.h"

namespace berth::sched::plugins {
namespace {

// Nodes of 4 cpu and 8Gi; the pod asks for 1 cpu and 2Gi, n2 already holds 2 cpu and 2Gi.
class FitStrategyTest : public testing::Test {
protected:
    FitStrategyTest() {
        table.put(node_yaml("n1") + node_yaml("n2"));
        table.put(pod("there", "n2", "{cpu: 2, memory: 2Gi}") + pod("p", "", "{cpu: 1, memory: 2Gi}"));
    }
    static std::string pod(const std::string& name, const std::string& node, const std::string& requests) {
        return "---\nkind: Pod\nmetadata: {name: " + name + ", namespace: default}\nspec: {" +
               (node.empty() ? "" : "nodeName: " + node + ", ") +
               "containers: [{name: c, resources: {requests: " + requests + "}}]}\n";
    }
    std::vector<int64_t> points(const Scorer& scorer, const std::string& name = "p") {
        const std::vector<Row> rows{table.ledger.row_of("n1"), table.ledger.row_of("n2")};
        std::vector<int64_t> out(2);
        scorer.score(table.ask(name), table.ledger, rows, out);
        return out;
    }
    TestTable table;
};

using Points = std::vector<int64_t>;

TEST_F(FitStrategyTest, TheDefaultIsLeastAllocatedOfCpuAndMemory) {
    // n1: (75 + 75) / 2; n2: (25 + 50) / 2.
    EXPECT_EQ(points(*fit_scorer({})), (Points{75, 37}));
    EXPECT_EQ(fit_scorer({})->row_term(), RowTerm::LeastAllocated);
    FitStrategy cpu_thrice;
    cpu_thrice.resources = {{model::kCpu, 3}, {model::kMemory, 1}};
    EXPECT_EQ(points(*fit_scorer(cpu_thrice)), (Points{75, (3 * 25 + 50) / 4}));
}

TEST_F(FitStrategyTest, MostAllocated) {
    FitStrategy most;
    most.type = FitStrategy::Type::MostAllocated;
    // n1: (25 + 25) / 2; n2: (75 + 50) / 2.
    EXPECT_EQ(points(*fit_scorer(most)), (Points{25, 62}));
}

TEST_F(FitStrategyTest, RequestedToCapacityRatio) {
    FitStrategy ratio;
    ratio.type = FitStrategy::Type::RequestedToCapacityRatio;
    ratio.shape = {{0, 0}, {100, 100}};
    // n1: 25 and 25; n2: 75 and 50, the mean 62.5 rounded.
    EXPECT_EQ(points(*fit_scorer(ratio)), (Points{25, 63}));
    ratio.shape = {{0, 100}, {50, 100}, {100, 0}};
    // n2: cpu at 75 gives 50, memory at 50 gives 100.
    EXPECT_EQ(points(*fit_scorer(ratio)), (Points{100, 75}));
    ratio.shape = {{30, 0}, {80, 100}};
    // n1: both at 25 give 0 and take no part; n2: cpu 90, memory 40.
    EXPECT_EQ(points(*fit_scorer(ratio)), (Points{0, 65}));
}

TEST_F(FitStrategyTest, AnExtendedResourceCountsOnlyForWhoAsksForIt) {
    table.put(
        "---\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10, x.io/gpu: 4}}\n" +
        pod("g", "", "{cpu: 1, x.io/gpu: 1}"));
    FitStrategy most;
    most.type = FitStrategy::Type::MostAllocated;
    most.resources = {{*model::intern_resource("x.io/gpu"), 1}};
    EXPECT_EQ(points(*fit_scorer(most)), (Points{0, 0}));
    EXPECT_EQ(points(*fit_scorer(most), "g"), (Points{25, 0}));
}

TEST_F(FitStrategyTest, BalancedOverThree) {
    table.put(
        "---\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10, x.io/gpu: 4}}\n" +
        pod("g", "", "{cpu: 1, memory: 2Gi, x.io/gpu: 4}"));
    const auto gpu = *model::intern_resource("x.io/gpu");
    const auto scorer = balanced_allocation({model::kCpu, model::kMemory, gpu});
    // n1: 0.25, 0.25, 1: deviation sqrt(0.125) = 0.3535; n2 has no gpu: |0.75 - 0.5| / 2 = 0.125.
    EXPECT_EQ(points(*scorer, "g"), (Points{64, 87}));
    EXPECT_EQ(balanced_allocation({model::kCpu, model::kMemory})->row_term(), RowTerm::BalancedAllocation);
}

TEST_F(FitStrategyTest, IgnoredResourcesAreNotLookedAt) {
    table.put(pod("g", "", "{cpu: 1, x.io/gpu: 1, y.io/a: 1}"));
    Profile profile;
    const auto why = [&](FitOptions options) {
        profile.filters = {fit_filter(std::move(options))};
        return diagnosis(sched::decide(table.ask("g"), table.ledger, profile).strikes, table.ledger);
    };
    EXPECT_EQ(why({}), "0/2 nodes are available: 2 Insufficient x.io/gpu, 2 Insufficient y.io/a.");
    EXPECT_EQ(why({{*model::intern_resource("x.io/gpu")}, {}}), "0/2 nodes are available: 2 Insufficient y.io/a.");
    EXPECT_EQ(why({{}, {"y.io"}}), "0/2 nodes are available: 2 Insufficient x.io/gpu.");
    EXPECT_EQ(fit_filter({{}, {"y.io"}})->row_term(), RowTerm::None);
}

TEST_F(FitStrategyTest, AddedAffinity) {
    table.put(node_yaml("n1", "{zone: a}") + node_yaml("n2", "{zone: b}"));
    AddedAffinity added;
    added.required = {{{{"zone", "In", {"b"}}}, {}}};
    added.preferred = {{7, {{{"zone", "In", {"a"}}}, {}}}};
    Profile profile;
    profile.filters = {node_affinity_filter(added)};
    const auto verdict = sched::decide(table.ask("p"), table.ledger, profile);
    EXPECT_EQ(verdict.feasible, std::vector<Row>{table.ledger.row_of("n2")});
    EXPECT_EQ(verdict.strikes.why(table.ledger.row_of("n1"))->reasons,
              std::vector<std::string>{"node(s) didn't match scheduler-enforced node affinity"});
    EXPECT_EQ(points(*node_affinity_scorer(added)), (Points{100, 0}));
}

}  // namespace
}  // namespace berth::sched::plugins
