// No core has two holders: random machines, pods, reservations, deletions and restarts, and two schedulers that see
// what the other did late. A judge that reads the stored records alone looks at every step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "base/random.h"
#include "model/reservation_status.h"
#include "run/bind_rules.h"
#include "sched/credit.h"
#include "sched/cycle.h"
#include "sched/fast/decider.h"

namespace berth::properties {
namespace {

using base::Random;
using Ids = std::set<int>;

// The judge's own reading of "0-2,5".
Ids ids_of(const std::string& text) {
    Ids out;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) {
        const auto dash = part.find('-');
        const int first = std::stoi(part);
        const int last = dash == std::string::npos ? first : std::stoi(part.substr(dash + 1));
        for (int id = first; id <= last; ++id) out.insert(id);
    }
    return out;
}

// {"cpuset":"0-3",...}: what stands between the quotes.
Ids cpus_in(const std::string& record) {
    const std::string key = "\"cpuset\":\"";
    const auto at = record.find(key);
    if (at == std::string::npos) return {};
    const auto begin = at + key.size();
    return ids_of(record.substr(begin, record.find('"', begin) - begin));
}

struct Machine {
    int cores = 1, threads = 1, numas = 1;
    Ids reserved;
    bool demands = false;  // something of everybody
    int cpus() const { return cores * threads; }
    int core_of(int cpu) const { return cpu % cores; }
};

// One that decides from what it has seen, and is told of the rest later.
struct Scheduler {
    ledger::Ledger ledger;
    std::unique_ptr<sched::fast::Decider> decider = std::make_unique<sched::fast::Decider>(sched::default_profile());
    std::deque<std::function<void(ledger::Ledger&)>> news;

    void listen(size_t most) {
        for (; most > 0 && !news.empty(); --most) {
            news.front()(ledger);
            news.pop_front();
        }
    }
};

class CoreTown {
public:
    explicit CoreTown(uint64_t seed) : random_(seed) {
        for (size_t i = 0; i < 1 + random_.below(3); ++i) put_node(fmt::format("n{}", i));
    }

    void step() {
        for (auto& scheduler : schedulers_) scheduler.listen(random_.below(4));
        const uint64_t what = random_.below(100);
        if (what < 25) delete_pod();
        if (what >= 25 && what < 33) end_reservation();
        if (what >= 33 && what < 36) restart(schedulers_[random_.below(2)]);
        if (what >= 36 && what < 46) reserve(schedulers_[random_.below(2)]);
        if (what >= 46) place(schedulers_[random_.below(2)]);
        judge();
    }
    size_t bound() const { return bound_; }
    size_t refused() const { return refused_; }
    size_t drawn() const { return drawn_; }

private:
    using Tell = std::function<void(ledger::Ledger&)>;
    void tell(const Tell& news) {
        news(truth_);
        for (auto& scheduler : schedulers_) scheduler.news.push_back(news);
    }

    void put_node(const std::string& name) {
        Machine machine{
            static_cast<int>(2 * random_.between(1, 4)), static_cast<int>(random_.between(1, 2)), 1, {}, false};
        machine.numas = random_.chance(1, 2) ? 2 : 1;
        auto node = std::make_shared<model::Node>();
        node->meta.name = name;
        node->allocatable = {{model::kCpu, 1000 * (machine.cpus() + random_.between(0, 2))},
                             {model::kPods, 20},
                             {model::kMemory, 1 << 30}};
        auto topology = std::make_shared<model::NodeTopology>();
        topology->meta.name = name;
        for (int id = 0; id < machine.cpus(); ++id) {
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
        for (auto& scheduler : schedulers_) scheduler.listen(1000);
    }

    model::Labels wishes() {
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
    std::shared_ptr<model::PodSpec> spec(const model::Labels& labels, const model::Labels& notes) {
        auto out = std::make_shared<model::PodSpec>();
        out->ns = "default";
        out->labels = labels;
        out->scheduler_name = "berth";
        out->scoring_cpu_milli = 1000 * random_.between(1, 4);
        out->requests = {{model::kCpu, out->scoring_cpu_milli}, {model::kPods, 1}};
        out->cores = model::read_core_wish(labels, notes);
        return out;
    }
    model::Labels labels() {
        model::Labels out;
        out.set("app", random_.chance(1, 2) ? "web" : "db");
        out.set("koordinator.sh/qosClass", random_.chance(4, 5) ? "LSR" : "LS");
        return out;
    }

    void place(Scheduler& scheduler) {
        model::Pod pod;
        pod.meta.ns = "default";
        pod.meta.name = pod.meta.uid = fmt::format("p{}", next_++);
        pod.meta.labels = labels();
        pod.meta.annotations = wishes();
        pod.spec = spec(pod.meta.labels, pod.meta.annotations);
        const auto decision = sched::decide_pod(pod, scheduler.ledger, sched::default_profile());
        ASSERT_EQ(scheduler.decider->choose(pod, scheduler.ledger), decision.verdict.chosen) << "the fast way";
        if (decision.verdict.chosen == ledger::kNoRow) return;
        scheduler.ledger.assume(pod, decision.verdict.chosen, decision.charges, decision.which);
        pod.node = scheduler.ledger.name(decision.verdict.chosen);
        for (const auto& [key, value] : decision.annotations) pod.meta.annotations.set(key, value);
        if (const auto fits = rules_.judge_bind(pod, truth_); !fits) {
            ++refused_;
            return scheduler.ledger.remove_pod(pod.meta.uid);
        }
        ++bound_;
        drawn_ += decision.charges.empty() ? 0 : 1;
        pods_[pod.meta.uid] = pod;
        tell([pod](ledger::Ledger& ledger) { ledger.put(pod); });
        const auto links = model::read_links(pod.meta.annotations);
        for (const auto& link : links->named()) {
            model::Reservation used = reservations_.at(link.uid);
            if (!used.allocate_once) continue;
            static_cast<model::ReservationStatus&>(used) = model::succeeded(used, {});
            store(std::move(used));
        }
    }

    void store(model::Reservation object) {
        object.meta.revision = ++revision_;
        reservations_[object.meta.uid] = object;
        const auto shared = std::make_shared<const model::Reservation>(object);
        tell([shared](ledger::Ledger& ledger) { ledger.put(shared); });
    }

    void reserve(Scheduler& scheduler) {
        model::Reservation object;
        object.meta.name = object.meta.uid = fmt::format("r{}", next_++);
        object.meta.revision = ++revision_;
        object.meta.labels = labels();
        object.spec = spec(object.meta.labels, wishes());
        model::ReservationOwner owner;
        owner.labels = model::Selector::parse(random_.chance(1, 2) ? "app=web" : "app=db").value();
        object.owners.push_back(owner);
        object.allocate_once = random_.chance(1, 2);
        if (random_.chance(1, 3)) object.policy = model::AllocatePolicy::Restricted;
        const auto pending = std::make_shared<const model::Reservation>(object);
        scheduler.ledger.put(pending);
        const auto decision = sched::decide_reservation(object, scheduler.ledger, sched::default_profile());
        ASSERT_EQ(scheduler.decider->choose(object, scheduler.ledger), decision.verdict.chosen) << "the fast way";
        if (decision.verdict.chosen == ledger::kNoRow) return scheduler.ledger.remove_reservation(object.meta.uid);
        const std::string node(scheduler.ledger.name(decision.verdict.chosen));
        scheduler.ledger.assume_reservation(scheduler.ledger.find_reservation(object.meta.uid), decision.verdict.chosen,
                                            false, decision.which);
        static_cast<model::ReservationStatus&>(object) = model::placed(object, node, object.spec->requests, {});
        if (decision.which) object.which = *decision.which;
        if (!rules_.judge_place(object, truth_)) {
            ++refused_;
            return scheduler.ledger.remove_reservation(object.meta.uid);
        }
        store(std::move(object));
    }

    void delete_pod() {
        if (pods_.empty()) return;
        auto chosen = pods_.begin();
        std::advance(chosen, static_cast<long>(random_.below(pods_.size())));
        const std::string uid = chosen->first;
        pods_.erase(chosen);
        tell([uid](ledger::Ledger& ledger) { ledger.remove_pod(uid); });
    }
    void end_reservation() {
        if (reservations_.empty()) return;
        auto chosen = reservations_.begin();
        std::advance(chosen, static_cast<long>(random_.below(reservations_.size())));
        const std::string uid = chosen->first;
        reservations_.erase(chosen);
        tell([uid](ledger::Ledger& ledger) { ledger.remove_reservation(uid); });
    }

    // It knows what is stored, and nothing else.
    void restart(Scheduler& scheduler) {
        Scheduler fresh;
        for (ledger::Row row = 0; row < truth_.rows(); ++row) {
            fresh.ledger.put(std::make_shared<const model::Node>(truth_.node(row)));
            fresh.ledger.put(truth_.cores().at(row)->object);
        }
        for (const auto& [uid, object] : reservations_) {
            fresh.ledger.put(std::make_shared<const model::Reservation>(object));
        }
        for (const auto& [uid, pod] : pods_) fresh.ledger.put(pod);
        for (ledger::Row row = 0; row < truth_.rows(); ++row) {
            const auto& is = *fresh.ledger.cores().at(fresh.ledger.row_of(truth_.name(row)));
            const auto& was = *truth_.cores().at(row);
            EXPECT_EQ(is.free.ids(), was.free.ids()) << "what is stored says who has which core";
            for (size_t i = 0; i < was.numa.size(); ++i) EXPECT_EQ(is.numa[i].used, was.numa[i].used);
        }
        scheduler = std::move(fresh);
    }

    // From the stored records alone.
    void judge() {
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
            EXPECT_FALSE(machine.reserved.contains(cpu)) << pod.meta.name << " has reserved CPU " << cpu;
            ++by_core[machine.core_of(cpu)];
        }
        const std::string* spec = pod.meta.annotations.find(model::kResourceSpec);
        for (const auto& [core, count] : by_core) {
            if (spec && spec->find(R"(requiredCPUBindPolicy":"Full)") != std::string::npos) {
                EXPECT_EQ(count, machine.threads) << pod.meta.name;
            }
            if (spec && spec->find(R"(requiredCPUBindPolicy":"Spread)") != std::string::npos) {
                EXPECT_EQ(count, 1) << pod.meta.name;
            }
        }
    }

    Random random_;
    std::map<std::string, Machine> machines_;
    std::map<std::string, model::Pod> pods_;
    std::map<std::string, model::Reservation> reservations_;
    ledger::Ledger truth_;
    run::BindRules rules_;
    std::array<Scheduler, 2> schedulers_;
    uint64_t revision_ = 0;
    size_t next_ = 0, bound_ = 0, refused_ = 0, drawn_ = 0;
};

TEST(Cores, NoneHasTwoHolders) {
    const char* given = std::getenv("BERTH_SEED");
    const char* many = std::getenv("BERTH_SEEDS");
    const uint64_t first = given ? std::stoull(given) : 1;
    const uint64_t last = given ? first : many ? std::stoull(many) : 60;
    size_t bound = 0, refused = 0, drawn = 0;
    for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("BERTH_SEED={}", seed));
        CoreTown world(seed);
        for (int step = 0; step < 150 && !testing::Test::HasFailure(); ++step) world.step();
        bound += world.bound();
        refused += world.refused();
        drawn += world.drawn();
    }
    fmt::print("seeds {}-{}: {} bound, {} of them drew, {} refused\n", first, last, bound, drawn, refused);
    if (given) return;
    EXPECT_GT(bound, 500u);
    EXPECT_GT(drawn, 50u);
    EXPECT_GT(refused, 20u) << "the schedulers never met";
}

}  // namespace
}  // namespace berth::properties
