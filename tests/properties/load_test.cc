// LowNodeLoad in random clusters, with budgets, metrics that are old or missing, and restarts. A judge that knows the
// plain numbers alone, and none of the descheduler's arithmetic, looks at every move when it is decided.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "control/migration.h"
#include "load_world.h"
#include "model/kinds/path.h"

namespace berth::properties {
namespace {

constexpr auto kInterval = std::chrono::seconds(60);
constexpr auto kExpires = std::chrono::seconds(180);

// What one history asks for, in the judge's own words.
struct Rules {
    int64_t low = 40, high = 60;  // percent of cpu; of memory, low_memory and high_memory
    int64_t low_memory = 60, high_memory = 75;
    int patience = 2;  // looks that are borne
    int per_node = 2;
    int64_t needed_low = 0;
    bool own_pool = false;  // the pool "other" is looked at apart, without patience
};

class Judge {
public:
    Judge(LoadWorld& world, const Rules& rules) : world_(world), rules_(rules) {}

    // Who is too busy now, and for how many looks: those within an interval are one.
    void look() {
        for (auto& [name, machine] : world_.machines) {
            if (!is_known(machine)) continue;  // nobody saw it: what was counted stays, until it is too old
            const bool follows = times_[name] > 0 && counted_[name] + 3 * kInterval > world_.now;
            if (!is_high(name, used_on(name))) {
                times_[name] = 0;
            } else if (!follows || counted_[name] + kInterval <= world_.now) {
                times_[name] = follows ? times_[name] + 1 : 1;
                counted_[name] = world_.now;
            }
        }
    }

    // The pods of one decision, in its order, and where they shall go.
    void judge(const std::vector<std::pair<std::string, std::string>>& moves) {
        idle_.clear();
        now_chosen_.clear();
        std::vector<std::string> pods;
        for (const auto& [pod, to] : moves) pods.push_back(pod);
        std::map<std::string, Amounts> used;
        std::map<std::string, int> leaving;
        for (const auto& [name, machine] : world_.machines) {
            if (is_known(machine)) used[name] = used_on(name);
        }
        for (const auto& [pod, job] : world_.under_way) {
            if (world_.tasks.contains(pod)) ++leaving[world_.tasks.at(pod).node];
        }
        for (const auto& pool : {"main", "other"}) {
            std::vector<std::string> moved;
            for (const auto& pod : pods) {
                if (pool_of(world_.tasks.at(pod).node) == pool) moved.push_back(pod);
            }
            if (!moved.empty()) judge_pool(pool, moved, used, leaving);
        }
        for (const auto& [pod, to] : moves) take(pod, to, used);
        decided += pods.size();
    }

    // In truth, by what runs there now.
    std::set<std::string> too_busy() const {
        std::set<std::string> out;
        for (const auto& [name, machine] : world_.machines) {
            if (is_high(name, world_.use_of(name))) out.insert(name);
        }
        return out;
    }

    size_t decided = 0;

private:
    void judge_pool(const std::string& pool, const std::vector<std::string>& pods, std::map<std::string, Amounts>& used,
                    std::map<std::string, int>& leaving) {
        std::vector<std::string> targets;
        size_t known = 0;
        for (const auto& [name, amount] : used) {
            if (pool_of(name) != pool) continue;
            ++known;
            const auto& machine = world_.machines.at(name);
            if (!machine.cordoned && is_low(name, amount)) targets.push_back(name);
        }
        EXPECT_GT(targets.size(), static_cast<size_t>(rules_.needed_low)) << "too few nodes are idle";
        EXPECT_LT(targets.size(), known) << "all are idle";
        for (const auto& pod : pods) {
            const auto& task = world_.tasks.at(pod);
            const auto& app = world_.apps.at(task.app);
            ASSERT_TRUE(used.contains(task.node))
                << pod << " leaves " << task.node << ", of which nobody knows anything";
            EXPECT_TRUE(is_high(task.node, used[task.node]))
                << pod << " leaves " << task.node << ", which is not too busy";
            const bool hasty = rules_.own_pool && pool == "other";
            EXPECT_GT(times_[task.node], hasty ? 0 : rules_.patience) << pod << ": too soon";
            EXPECT_LE(++leaving[task.node], rules_.per_node) << pod << ": too many at once";
            EXPECT_FALSE(app.is_daemon || app.is_kept) << pod << " may not be moved";
            EXPECT_GT(replicas(task.app), 1) << pod << " is the only one";
            EXPECT_FALSE(world_.under_way.contains(pod) || world_.had_job.contains(task.uid)) << pod << ": again";
            const Amounts its = use_of(task.node, pod);
            used[task.node] = {used[task.node].cpu - its.cpu, used[task.node].memory - its.memory};
        }
        for (const auto& target : targets) idle_.insert(target);
    }

    // The node that was chosen is idle, has room, and is not too busy with all who come.
    void take(const std::string& pod, const std::string& to, const std::map<std::string, Amounts>& used) {
        ASSERT_TRUE(used.contains(to)) << pod << " goes to " << to << ", of which nobody knows anything";
        const auto& task = world_.tasks.at(pod);
        const auto& zone = world_.apps.at(task.app).zone;
        EXPECT_TRUE(zone.empty() || zone == world_.machines.at(to).zone) << pod << " may not be on " << to;
        EXPECT_EQ(pool_of(to), pool_of(task.node));
        EXPECT_TRUE(idle_.contains(to)) << pod << " goes to " << to << ", which is not idle";
        coming_[pod] = to;
        Amounts its = used_on(to), asked;
        for (const auto& [other, where] : coming_) {
            const auto found = world_.tasks.find(other);
            if (where != to || found == world_.tasks.end() || (other != pod && !is_on_its_way(other))) continue;
            const Amounts use = use_of(found->second.node, other);
            its = {its.cpu + use.cpu, its.memory + use.memory};
            asked = {asked.cpu + found->second.asked.cpu, asked.memory + found->second.asked.memory};
        }
        EXPECT_FALSE(is_high(to, its)) << to << " is too busy with " << pod;
        const Amounts free = free_on(to);
        EXPECT_TRUE(asked.cpu <= free.cpu && asked.memory <= free.memory) << pod << " has no room on " << to;
        now_chosen_.insert(pod);
    }
    bool is_on_its_way(const std::string& pod) const {
        return world_.under_way.contains(pod) || now_chosen_.contains(pod);
    }

    std::string pool_of(const std::string& node) const {
        return rules_.own_pool ? world_.machines.at(node).pool : "main";
    }
    bool is_known(const LoadMachine& machine) const {
        return machine.measured && *machine.measured + kExpires > world_.now;
    }
    int replicas(const std::string& app) const {
        int out = 0;
        for (const auto& [name, task] : world_.tasks) out += task.app == app ? 1 : 0;
        return out;
    }
    Amounts use_of(const std::string& node, const std::string& pod) const {
        const auto& said = world_.machines.at(node).said;
        const auto found = said.find(pod);
        return found == said.end() ? world_.tasks.at(pod).asked : found->second;
    }
    // By the system and by who stays.
    Amounts used_on(const std::string& node) const {
        Amounts out = world_.machines.at(node).system_said;
        for (const auto& [name, task] : world_.tasks) {
            if (task.node != node || world_.under_way.contains(name)) continue;
            const Amounts its = use_of(node, name);
            out = {out.cpu + its.cpu, out.memory + its.memory};
        }
        return out;
    }
    Amounts free_on(const std::string& node) const {
        const auto& machine = world_.machines.at(node);
        Amounts out{machine.size.cpu - machine.reserved.cpu, machine.size.memory};
        for (const auto& [name, task] : world_.tasks) {
            if (task.node == node) out = {out.cpu - task.asked.cpu, out.memory - task.asked.memory};
        }
        return out;
    }
    // used / size > percent / 100, without a division.
    static bool above(int64_t used, int64_t size, int64_t percent) { return used * 100 > size * percent; }
    bool is_high(const std::string& node, const Amounts& used) const {
        const auto& machine = world_.machines.at(node);
        return above(used.cpu, machine.size.cpu - machine.reserved.cpu, rules_.high) ||
               above(used.memory, machine.size.memory, rules_.high_memory);
    }
    bool is_low(const std::string& node, const Amounts& used) const {
        const auto& machine = world_.machines.at(node);
        return !above(used.cpu, machine.size.cpu - machine.reserved.cpu, rules_.low) &&
               !above(used.memory, machine.size.memory, rules_.low_memory);
    }

    LoadWorld& world_;
    const Rules rules_;
    std::map<std::string, int> times_;
    std::map<std::string, base::Time> counted_;
    std::map<std::string, std::string> coming_;  // where each pod was to go
    std::set<std::string> idle_, now_chosen_;
};

control::DeschedulerConfig config_for(const Rules& rules) {
    control::DeschedulerConfig out;
    out.limits.per_node = rules.per_node;
    control::LoadRules& load = out.load;
    load.enable = true;
    load.low = {rules.low, rules.low_memory};
    load.high = {rules.high, rules.high_memory};
    load.abnormal = rules.patience;
    load.number_of_nodes = rules.needed_low;
    load.limits = out.limits;
    load.movable.labels = {*Selector::parse("kept=no")};
    if (rules.own_pool) {
        control::LoadMeasure pool = load;
        pool.abnormal = 1;
        pool.nodes = *Selector::parse("pool=other");
        load.pools = {pool};
    }
    return out;
}

Rules some_rules(std::mt19937_64& random) {
    Rules out;
    out.patience = static_cast<int>(random() % 3 + 2);
    out.per_node = static_cast<int>(random() % 3 + 1);
    out.needed_low = random() % 4 == 0 ? 1 : 0;
    out.own_pool = random() % 3 == 0;
    out.high = 50 + static_cast<int64_t>(random() % 30);
    return out;
}

std::vector<std::pair<std::string, std::string>> chosen(const control::Writes& writes) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& write : writes) {
        if (write.resource == control::kMigrationJobs && write.verb == control::Write::Verb::Create)
            out.emplace_back(
                model::string_at(write.body, ".spec.podRef.name"),
                model::members_at(write.body, ".metadata.annotations").at("berth.dev/moves-to").get_string());
    }
    return out;
}

struct Told {
    size_t decided = 0, moves = 0, refused = 0;
};

// Looks, one a minute, while pods come and go and the descheduler dies; then nothing changes any more: no node becomes
// too busy that was not, and it rests.
Told live(uint64_t seed) {
    std::mt19937_64 dice(seed ^ 0x9e3779b97f4a7c15U);
    const Rules rules = some_rules(dice);
    LoadWorld world(seed, config_for(rules));
    Judge judge(world, rules);
    const auto look = [&] {
        world.settle([&](const control::Writes& writes, bool chooses) {
            if (!chooses) return;
            judge.look();
            judge.judge(chosen(writes));
        });
        world.pass(kInterval);
    };
    for (int i = 0; i < 25 && !testing::Test::HasFailure(); ++i) {
        world.disturb();
        world.measure(false);
        world.disturb();
        if (dice() % 4 == 0) world.restart();
        look();
    }
    // What was begun before may still end otherwise.
    size_t before = 0;
    for (int i = 0; i < 90 && !testing::Test::HasFailure(); ++i) {
        const auto busy = judge.too_busy();
        world.measure(true);
        look();
        if (i == 60) before = world.moves;
        if (i < 6) continue;
        for (const auto& name : judge.too_busy()) EXPECT_TRUE(busy.contains(name)) << name << " was made too busy";
    }
    EXPECT_EQ(world.moves, before) << "nothing changes, and pods are moved for ever";
    return {judge.decided, world.moves, world.refused};
}

TEST(Load, NobodyLeavesANodeThatIsFineNoTargetIsOverloadedAndItRests) {
    const char* given = std::getenv("BERTH_SEED");
    const char* many = std::getenv("BERTH_SEEDS");
    const uint64_t count = 150;
    const uint64_t first = given ? std::stoull(given) : 1;
    const uint64_t last = given ? first : many ? std::stoull(many) : count;
    Told all;
    for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("BERTH_SEED={}", seed));
        const Told told = live(seed);
        all = {all.decided + told.decided, all.moves + told.moves, all.refused + told.refused};
    }
    fmt::print("seeds {}-{}: {} moves decided, {} pods moved, {} refused by a budget\n", first, last, all.decided,
               all.moves, all.refused);
    if (given) return;
    EXPECT_GT(all.moves, count / 4);
    EXPECT_GT(all.refused, 0U) << "no budget was ever in the way";
}

}  // namespace
}  // namespace berth::properties
