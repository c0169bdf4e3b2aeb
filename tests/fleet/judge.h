#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>

#include "fleet/objects.h"
#include "tree.h"

// Who judges a tree: what is counted is counted from what each provider shows of its rows, in plain integers.
namespace berth::fleet_test {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

inline int64_t cpu_of(const model::Amounts& amounts) {
    const auto found = amounts.find("cpu");
    return found == amounts.end() ? 0 : found->second.value();
}

// What must hold at every moment, whoever has died and whatever was lost.
class Judge {
public:
    explicit Judge(Tree& tree) : tree_(tree) {
        tree.check = [this](size_t actor) { look(actor); };
        for (size_t i = 0; i < tree.layers(); ++i) tree.server(i).written = [this, i] { written_.insert(i); };
    }
    void may_exceed(const std::string& leaf) { shrunk_.insert(leaf); }
    void may_vanish(const std::string& pool) { vanishing_.insert(pool); }

private:
    struct Known {
        uint64_t revision = 0;
        std::map<std::string, int> ranks;
        bool committed = false;
    };
    // A provider's rows change in its own turns alone.
    void look(size_t actor) {
        if (testing::Test::HasFailure()) return;  // what went wrong first is what counts
        for (; known_actors_ < tree_.actors.size(); ++known_actors_) {
            const std::string& name = tree_.actors[known_actors_].name;
            for (const auto& leaf : tree_.leaves) {
                if (name == "provider " + leaf->name) leaves_[known_actors_] = leaf.get();
            }
        }
        if (const auto leaf = leaves_.find(actor); leaf != leaves_.end()) look_at_leaf(*leaf->second);
        for (const size_t i : std::exchange(written_, {})) {
            for (const auto& record : tree_.server(i).list("core.ironcore.dev/reservations"))
                look(*record, known_[{i, record->uid}]);
            if (i == 0) look_at_machines(tree_.server(i));
        }
    }
    void look_at_leaf(const Tree::Leaf& leaf) {
        if (!leaf.provider) return;
        const auto& table = leaf.provider->table();
        int64_t used = 0;
        int64_t held = 0;
        std::erase_if(homes_, [&](const auto& home) { return home.second == leaf.name; });
        for (const auto& [lineage, machine] : table.machines()) {
            used += cpu_of(machine.amounts);
            const auto [home, fresh] = homes_.emplace(lineage, leaf.name);
            EXPECT_TRUE(fresh) << "I2: " << lineage << " is on " << home->second << " and on " << leaf.name;
        }
        for (const auto& [lineage, hold] : table.holds()) {
            if (hold.state != model::HoldState::Accepted) continue;
            held += cpu_of(hold.ask.resources);
            EXPECT_FALSE(table.machines().contains(lineage)) << "I3: " << lineage << " has a hold and a machine";
            if (hold.ask.keeps()) continue;
            EXPECT_TRUE(hold.until && *hold.until - tree_.clock.now() <= minutes(2)) << "I5: " << lineage;
        }
        // Whose machines alone are more than there is since it was made smaller holds nothing for others.
        const bool shrunk = shrunk_.contains(leaf.name) && held == 0;
        EXPECT_TRUE(shrunk || used + held <= cpu_of(table.capacity()))
            << "I1: " << leaf.name << " has " << used << " and " << held << " of " << cpu_of(table.capacity());
        forward(leaf.name, table);
    }
    // I6, I7, I10 and I11 of one object, whenever it has changed.
    void look(const store::Record& record, Known& known) {
        if (std::exchange(known.revision, record.revision) == record.revision) return;
        const Json object = crash::SmallServer::document(record);
        const auto read = fleet::read_reservation(object);
        ASSERT_TRUE(read);
        std::set<std::string> names;
        for (const auto& entry : read->asked.entries) {
            EXPECT_TRUE(names.insert(entry.name).second)
                << "I7: " << record.key.name << " has " << entry.name << " twice";
            int& rank = known.ranks[entry.name];
            EXPECT_GE(rank_of(entry.answer.state), rank)
                << "I6: " << record.key.name << " at " << entry.name << " is " << model::name_of(entry.answer.state);
            rank = rank_of(entry.answer.state);
        }
        for (const auto& [name, rank] : known.ranks)
            EXPECT_TRUE(names.contains(name) || vanishing_.contains(name))
                << "I7: " << record.key.name << " has lost the answer of " << name;
        if (!read->asked.commit.empty()) {
            EXPECT_EQ(read->asked.pools, std::vector<std::string>{read->asked.commit}) << "I10: " << record.key.name;
            known.committed |= waits_for(*read, read->asked.commit);
            if (known.committed) committed_.insert(read->ask.lineage + " " + read->asked.commit);
        }
        static const std::set<std::string> kAllowed{"pools", "name", "state", "reason", "score", "lease", "committed"};
        const Json* status = base::find(object, {"status"});
        if (status == nullptr) return;
        for (const auto& member : status->get_object())
            EXPECT_TRUE(kAllowed.contains(std::string(member.key()))) << "I11: " << member.key();
    }
    static bool waits_for(const fleet::Reservation& reservation, const std::string& pool) {
        for (const auto& entry : reservation.asked.entries) {
            if (entry.name == pool && (entry.answer.committed || entry.answer.state == model::HoldState::Bound))
                return true;
        }
        return false;
    }
    // I8: whose pool was set by the scheduler had a hold there that waited for it.
    void look_at_machines(const crash::SmallServer& server) {
        for (const auto& record : server.list("compute.ironcore.dev/machines")) {
            if (std::exchange(seen_[record->uid], record->revision) == record->revision) continue;
            const auto machine = fleet::read_machine(crash::SmallServer::document(*record));
            ASSERT_TRUE(machine);
            if (machine->pool.empty() || machine->meta.name.starts_with("hand")) continue;
            EXPECT_TRUE(committed_.contains(machine->lineage + " " + machine->pool)) << "I8: " << machine->meta.name;
        }
    }
    static int rank_of(model::HoldState state) {
        return state == model::HoldState::Pending ? 0 : state <= model::HoldState::NoReply ? 1 : 2;
    }
    // I6: within an attempt a hold never goes back.
    void forward(const std::string& leaf, const fleet::HoldTable& table) {
        for (const auto& [lineage, hold] : table.holds()) {
            int& rank = ranks_[{leaf, lineage, hold.ask.attempt}];
            const int now = rank_of(hold.state);
            EXPECT_GE(now, rank) << "I6: " << leaf << " " << lineage;
            rank = std::max(rank, now);
        }
    }

    Tree& tree_;
    size_t known_actors_ = 0;
    std::map<size_t, const Tree::Leaf*> leaves_;  // by the actor that is their provider
    std::map<std::string, std::string> homes_;    // of lineages: where they have a machine
    std::set<size_t> written_;                    // layers
    std::set<std::string> shrunk_;
    std::set<std::string> vanishing_;
    std::map<std::tuple<std::string, std::string, uint64_t>, int> ranks_;
    std::map<std::pair<size_t, std::string>, Known> known_;  // by layer and uid
    std::map<std::string, uint64_t> seen_;
    std::set<std::string> committed_;  // lineage and pool
};

inline Spec leaf(const std::string& name, int64_t cpu) {
    return {name, cpu, {}};
}

inline bool until(Tree& tree, base::Duration most, const std::function<bool()>& done) {
    const auto end = tree.clock.now() + most;
    while (tree.clock.now() < end) {
        if (done()) return true;
        tree.step();
    }
    return done();
}

inline size_t running(const Tree& tree) {
    size_t out = 0;
    for (const auto& [name, machine] : tree.machines()) out += machine.state == "Running" ? 1 : 0;
    return out;
}

inline int64_t used(const Tree& tree, const std::string& name) {
    int64_t out = 0;
    for (const auto& each : tree.leaves) {
        if (each->name != name) continue;
        for (const auto& [lineage, machine] : each->provider->table().machines()) out += cpu_of(machine.amounts);
    }
    return out;
}

inline size_t live_holds(const Tree& tree) {
    size_t out = 0;
    for (const auto& each : tree.leaves) {
        for (const auto& [lineage, hold] : each->provider->table().holds())
            out += hold.state == model::HoldState::Accepted ? 1 : 0;
    }
    return out;
}

}  // namespace berth::fleet_test
