// Who has which cores of a row: as members come and go, whatever order events have.
#include "ledger/cores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "base/random.h"
#include "ledger/ledger.h"
#include "ledger/which.h"

namespace berth::ledger {
namespace {

// i and i + half are one core.
model::CpuTopology machine(int32_t numas, int32_t cores) {
    model::CpuTopology out;
    const int32_t all = numas * cores;
    for (int32_t id = 0; id < 2 * all; ++id) out.push_back({id, id % all, id % all / cores, 0});
    return out;
}

std::shared_ptr<const model::NodeTopology> topology(const std::string& node, model::CpuTopology cpus) {
    auto out = std::make_shared<model::NodeTopology>();
    out->meta.name = node;
    out->cpus = std::move(cpus);
    return out;
}

std::shared_ptr<const model::Node> node(const std::string& name) {
    auto out = std::make_shared<model::Node>();
    out->meta.name = name;
    out->allocatable = {{model::kCpu, 16'000}, {model::kPods, 110}};
    return out;
}

model::Pod pod(const std::string& name, const std::string& cpus, const std::string& where = "n") {
    model::Pod out;
    out.meta.name = out.meta.uid = name;
    out.meta.ns = "default";
    if (!cpus.empty()) out.meta.annotations.set(model::kResourceStatus, R"({"cpuset":")" + cpus + "\"}");
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "default";
    out.spec = std::move(spec);
    out.node = where;
    return out;
}

std::string free_of(const Ledger& ledger) {
    const NodeCores* cores = ledger.cores().at(ledger.row_of("n"));
    return cores == nullptr ? "unknown" : model::cpu_list_text(cores->free.ids());
}

TEST(Cores, EventsComeInAnyOrder) {
    std::vector<std::function<void(Ledger&)>> events{
        [](Ledger& l) { l.put(node("n")); },
        [](Ledger& l) { l.put(topology("n", machine(1, 4))); },
        [](Ledger& l) { l.put(pod("a", "0,4")); },
        [](Ledger& l) { l.put(pod("b", "1")); },
    };
    std::vector<size_t> order{0, 1, 2, 3};
    do {
        Ledger ledger;
        for (const size_t i : order) events[i](ledger);
        EXPECT_EQ(free_of(ledger), "2-3,5-7");
        ledger.remove_pod("a");
        EXPECT_EQ(free_of(ledger), "0,2-7");
        ledger.remove_topology("n", "");
        EXPECT_EQ(ledger.cores().at(0)->layout, nullptr) << "without a topology there are no cores to give";
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Cores, TheStoredRecordReplacesTheAssumedOne) {
    Ledger ledger;
    ledger.put(node("n"));
    ledger.put(topology("n", machine(1, 4)));
    model::Pod asks = pod("a", "");
    asks.node.clear();
    auto which = std::make_shared<model::Which>();
    which->cores.cpus = {0, 4};
    ledger.assume(asks, 0, {}, which);
    EXPECT_EQ(free_of(ledger), "1-3,5-7");
    ledger.put(pod("a", "1,5"));
    EXPECT_EQ(free_of(ledger), "0,2-4,6-7");
    ledger.lift(ledger.find_pod("a"));
    EXPECT_EQ(free_of(ledger), "0-7");
    ledger.put_back(ledger.find_pod("a"));
    EXPECT_EQ(free_of(ledger), "0,2-4,6-7");
}

TEST(Cores, FaultsNameWhoAndWhich) {
    Ledger ledger;
    ledger.put(node("n"));
    ledger.put(topology("n", machine(1, 4)));
    EXPECT_EQ(ledger.core_fault(0), "");
    ledger.put(pod("a", "0-1"));
    ledger.put(pod("b", "1-2"));
    EXPECT_EQ(ledger.core_fault(0), "pod default/b has CPU 1, which another has, too");
    ledger.remove_pod("a");
    EXPECT_EQ(ledger.core_fault(0), "");
    ledger.put(pod("c", "8"));
    EXPECT_EQ(ledger.core_fault(0), "pod default/c has CPU 8, which is not there");
    ledger.remove_pod("c");
    ledger.put(pod("d", "4-"));
    EXPECT_NE(ledger.core_fault(0).find("pod default/d: annotation"), std::string::npos) << ledger.core_fault(0);
}

// Two reservations hold 4 of a NUMA node's memory each, and a pod draws 6 from both: 2 of the second are left.
TEST(Cores, SeveralReservationsPayForOneNumaNode) {
    auto machines = std::make_shared<model::NodeTopology>(*topology("n", machine(1, 4)));
    machines->zones = {{0, {{model::kMemory, 10}}}};
    Cores cores;
    cores.put(machines);
    cores.see(0, *node("n"));
    const auto enter = [&](bool reservation, uint32_t index, int64_t memory, std::vector<ReservationIndex> from) {
        auto which = std::make_shared<model::Which>();
        which->cores.numa = {{0, {{model::kMemory, memory}}}};
        cores.enter(0, {reservation, index, which, model::CpuExclusive::None, std::move(from)});
    };
    enter(true, 5, 4, {});
    enter(true, 6, 4, {});
    enter(false, 1, 6, {5, 6});
    EXPECT_EQ(cores.at(0)->numa[0].used.get(model::kMemory), 8);
    EXPECT_EQ(cores.at(0)->remaining(5, 0, model::kMemory), 0);
    EXPECT_EQ(cores.at(0)->remaining(6, 0, model::kMemory), 2);
    cores.leave(0, true, 5);
    EXPECT_EQ(cores.at(0)->numa[0].used.get(model::kMemory), 6) << "the second pays what is left to pay";
    EXPECT_EQ(cores.at(0)->remaining(6, 0, model::kMemory), 0);
}

// Every CPU is kept, free, or somebody's, and whoever comes and goes leaves nothing behind.
TEST(Cores, AnyHistoryIsTheSumOfItsMembers) {
    const char* given = std::getenv("BERTH_SEED");
    const uint64_t seed = given ? std::stoull(given) : 1;
    SCOPED_TRACE(testing::Message() << "BERTH_SEED=" << seed);
    base::Random random(seed);
    Ledger ledger;
    ledger.put(node("n"));
    ledger.put(topology("n", machine(2, 35)));
    std::map<std::string, CpuBits> held;
    for (int step = 0; step < 2000; ++step) {
        const std::string name = "p" + std::to_string(random.below(12));
        if (held.contains(name)) {
            ledger.remove_pod(name);
            held.erase(name);
        } else {
            CpuBits cpus;
            for (uint64_t i = random.below(6); i-- > 0;) cpus.add(static_cast<int32_t>(random.below(140)));
            for (const auto& [other, taken] : held) cpus.remove(taken);
            held[name] = cpus;
            ledger.put(pod(name, model::cpu_list_text(cpus.ids())));
        }
        CpuBits all;
        for (int32_t cpu = 0; cpu < 140; ++cpu) all.add(cpu);
        for (const auto& [other, taken] : held) all.remove(taken);
        ASSERT_EQ(free_of(ledger), model::cpu_list_text(all.ids())) << "step " << step;
        ASSERT_EQ(ledger.core_fault(0), "");
        ASSERT_EQ(ledger.cores().at(0)->free_cpus, all.count());
    }
}

}  // namespace
}  // namespace berth::ledger
