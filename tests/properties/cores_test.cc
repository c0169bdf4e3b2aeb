// No core has two holders: random machines, pods, reservations, deletions and restarts, and two schedulers that see
// what the other did late. A judge that reads the stored records alone looks at every step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "model/allocated.h"
#include "part_records.h"
#include "town.h"

namespace berth::properties {
namespace {

struct Machine {
    int cores = 1, threads = 1, numas = 1;
    Ids reserved, offline;
    int cpus() const { return cores * threads; }
    int core_of(int cpu) const { return cpu % cores; }
    int threads_of(int core) const {
        int count = 0;
        for (int cpu = core; cpu < cpus(); cpu += cores) count += offline.contains(cpu) ? 0 : 1;
        return count;
    }
};

class CoreTown final : public Town {
public:
    explicit CoreTown(uint64_t seed) : Town(seed) {
        for (size_t i = 0; i < 1 + random_.below(3); ++i) put_node(fmt::format("n{}", i));
    }

private:
    void put_node(const std::string& name) {
        Machine machine{
            static_cast<int>(2 * random_.between(1, 4)), static_cast<int>(random_.between(1, 3)), 1, {}, {}};
        machine.numas = random_.chance(1, 2) ? 2 : 1;
        auto node = std::make_shared<model::Node>();
        node->meta.name = name;
        node->allocatable = {{model::kCpu, 1000 * (machine.cpus() + random_.between(0, 2))},
                             {model::kPods, 20},
                             {model::kMemory, 1 << 30}};
        auto topology = std::make_shared<model::NodeTopology>();
        topology->meta.name = name;
        for (int id = 0; id < machine.cpus(); ++id) {
            if (id > 0 && random_.chance(1, 12)) machine.offline.insert(id);
            if (machine.offline.contains(id)) continue;
            const int numa = machine.core_of(id) / (machine.cores / machine.numas);
            topology->cpus.push_back({id, machine.core_of(id), numa, numa});
        }
        if (random_.chance(1, 3)) machine.reserved = {0};
        topology->reserved.assign(machine.reserved.begin(), machine.reserved.end());
        const char* policies[] = {"", "", "BestEffort", "Restricted", "SingleNUMANode"};
        if (const std::string policy = policies[random_.below(5)]; !policy.empty() && random_.chance(1, 3)) {
            node->meta.labels.set("node.koordinator.sh/numa-topology-policy", policy);
        }
        if (random_.chance(1, 4)) node->meta.labels.set("node.koordinator.sh/numa-allocate-strategy", "MostAllocated");
        machines_[name] = machine;
        tell([node, topology](ledger::Ledger& ledger) {
            ledger.put(node);
            ledger.put(topology);
        });
        everybody_listens();
    }

    model::Labels wishes() override {
        model::Labels out;
        const char* specs[] = {
            "", R"({"requiredCPUBindPolicy":"FullPCPUs"})", R"({"preferredCPUBindPolicy":"SpreadByPCPUs"})",
            R"({"requiredCPUBindPolicy":"SpreadByPCPUs"})", R"({"preferredCPUExclusivePolicy":"PCPULevel"})"};
        if (const std::string spec = specs[random_.below(5)]; !spec.empty()) out.set(model::kResourceSpec, spec);
        const char* policies[] = {"SingleNUMANode", "Restricted", "BestEffort"};
        if (random_.chance(1, 5)) {
            out.set(model::kNumaTopologySpec,
                    fmt::format(R"({{"numaTopologyPolicy":"{}"}})", policies[random_.below(3)]));
        }
        return out;
    }
    std::shared_ptr<model::PodSpec> spec(const model::Labels& labels, const model::Labels& notes) override {
        auto out = std::make_shared<model::PodSpec>();
        out->ns = "default";
        out->labels = labels;
        out->scheduler_name = "berth";
        out->scoring_cpu_milli = 1000 * random_.between(1, 4);
        out->requests = {{model::kCpu, out->scoring_cpu_milli}, {model::kPods, 1}};
        out->cores = model::read_core_wish(labels, notes);
        return out;
    }
    model::Labels labels() override {
        model::Labels out;
        out.set("app", random_.chance(1, 2) ? "web" : "db");
        out.set("koordinator.sh/qosClass", random_.chance(4, 5) ? "LSR" : "LS");
        return out;
    }

    void tell_machines(ledger::Ledger& fresh) override {
        for (ledger::Row row = 0; row < truth_.rows(); ++row) {
            fresh.put(std::make_shared<const model::Node>(truth_.node(row)));
            fresh.put(truth_.cores().at(row)->object);
        }
    }
    void compare(const ledger::Ledger& fresh) override {
        for (ledger::Row row = 0; row < truth_.rows(); ++row) {
            const auto& is = *fresh.cores().at(fresh.row_of(truth_.name(row)));
            const auto& was = *truth_.cores().at(row);
            EXPECT_EQ(is.free.ids(), was.free.ids()) << "what is stored says who has which core";
            for (size_t i = 0; i < was.numa.size(); ++i) EXPECT_EQ(is.numa[i].used, was.numa[i].used);
        }
    }

    // From the stored records alone.
    void judge() override {
        for (const auto& [node, machine] : machines_) {
            std::map<int, std::string> holder;
            for (const auto& [uid, pod] : pods_) {
                if (pod.node != node) continue;
                const std::string* record = pod.meta.annotations.find(model::kResourceStatus);
                const Ids cpus = record ? cpus_in(*record) : Ids();
                judge_record(machine, pod, cpus);
                for (const int cpu : cpus) {
                    EXPECT_TRUE(holder.emplace(cpu, uid).second)
                        << "CPU " << cpu << " of " << node << ": " << uid << " and " << holder[cpu];
                }
            }
            std::map<int, std::string> reserver;
            for (const auto& [uid, object] : reservations_) {
                if (object.node != node || object.phase != model::ReservationPhase::Available) continue;
                for (const int cpu : object.which.cores.cpus) {
                    EXPECT_TRUE(reserver.emplace(cpu, uid).second) << "CPU " << cpu << " is reserved twice";
                    if (!holder.contains(cpu)) continue;
                    const std::string* link = pods_.at(holder[cpu]).meta.annotations.find(model::kReservationAllocated);
                    const std::string* draws = pods_.at(holder[cpu]).meta.annotations.find(model::kReservationDraws);
                    const std::string all = (link ? *link : "") + (draws ? *draws : "");
                    EXPECT_NE(all.find("\"" + uid + "\""), std::string::npos)
                        << holder[cpu] << " has what " << uid << " holds";
                }
            }
            EXPECT_EQ(truth_.core_fault(truth_.row_of(node)), "");
        }
    }
    static void judge_record(const Machine& machine, const model::Pod& pod, const Ids& cpus) {
        const int64_t asked = pod.spec->requests.get(model::kCpu) / 1000;
        const bool bound = *pod.meta.labels.find("koordinator.sh/qosClass") == "LSR";
        EXPECT_EQ(static_cast<int64_t>(cpus.size()), bound ? asked : 0) << pod.meta.name;
        std::map<int, int> by_core;
        for (const int cpu : cpus) {
            EXPECT_LT(cpu, machine.cpus());
            EXPECT_FALSE(machine.offline.contains(cpu)) << pod.meta.name << " has CPU " << cpu << ", which is off";
            EXPECT_FALSE(machine.reserved.contains(cpu)) << pod.meta.name << " has reserved CPU " << cpu;
            ++by_core[machine.core_of(cpu)];
        }
        const std::string* spec = pod.meta.annotations.find(model::kResourceSpec);
        for (const auto& [core, count] : by_core) {
            if (spec && spec->find(R"(requiredCPUBindPolicy":"Full)") != std::string::npos) {
                EXPECT_EQ(count, machine.threads_of(core)) << pod.meta.name;
            }
            if (spec && spec->find(R"(requiredCPUBindPolicy":"Spread)") != std::string::npos) {
                EXPECT_EQ(count, 1) << pod.meta.name;
            }
        }
    }

    std::map<std::string, Machine> machines_;
};

TEST(Cores, NoneHasTwoHolders) {
    live_in_towns([](uint64_t seed) { return std::make_unique<CoreTown>(seed); }, 60, {500, 50, 20});
}

}  // namespace
}  // namespace berth::properties
