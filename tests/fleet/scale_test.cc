#include <algorithm>
#include <cmath>

#include "judge.h"

// Figures of larger trees.
namespace berth::fleet_test {
namespace {

size_t number(const char* name, size_t otherwise) {
    const char* given = std::getenv(name);
    return given == nullptr ? otherwise : std::stoull(given);
}

// What is seen of each leaf, whenever its provider was turned.
class Figures {
public:
    explicit Figures(Tree& tree) : tree_(tree) {
        std::map<std::string, size_t> by_name;
        for (size_t i = 0; i < tree.leaves.size(); ++i) by_name["provider " + tree.leaves[i]->name] = i;
        for (size_t i = 0; i < tree.actors.size(); ++i) {
            const auto leaf = by_name.find(tree.actors[i].name);
            if (leaf != by_name.end()) leaves_[i] = leaf->second;
        }
        seen_.resize(tree.leaves.size());
        tree.turned = [this](size_t actor) {
            const auto leaf = leaves_.find(actor);
            if (leaf != leaves_.end()) look(tree_.leaves[leaf->second]->provider->table(), seen_[leaf->second]);
        };
    }
    void make(const std::string& name) {
        tree_.machine(name, 1);
        const auto all = tree_.server(0).store().get({"compute.ironcore.dev/machines", "default", name});
        made_[all->uid] = tree_.clock.now();
    }
    size_t placed() const { return waited_.size(); }
    double blocked() const { return blocked_; }
    double waited_ms(size_t of_100) {
        std::sort(waited_.begin(), waited_.end());
        return 1000 * waited_[waited_.size() * of_100 / 100];
    }

private:
    struct Seen {
        base::Instant at;
        int64_t held = 0;
        size_t machines = 0;
    };
    void look(const fleet::HoldTable& table, Seen& seen) {
        const auto now = tree_.clock.now();
        const double passed = std::chrono::duration<double>(now - std::exchange(seen.at, now)).count();
        blocked_ += static_cast<double>(std::exchange(seen.held, cpu_of(table.held()))) * passed;
        if (std::exchange(seen.machines, table.machines().size()) == table.machines().size()) return;
        for (const auto& [lineage, machine] : table.machines()) {
            const auto made = made_.find(lineage);
            if (made == made_.end()) continue;
            waited_.push_back(std::chrono::duration<double>(now - made->second).count());
            made_.erase(made);
        }
    }

    Tree& tree_;
    std::map<size_t, size_t> leaves_;  // by actor
    std::vector<Seen> seen_;
    std::map<std::string, base::Instant> made_;  // those that are not there yet, by lineage
    std::vector<double> waited_;
    double blocked_ = 0;
};

// Figures rather than a verdict: what a machine costs in a tree of that size, in messages, in room that is held for
// nobody and in time. Half of the room is used in the end.
TEST(FleetScale, Figures) {
    const size_t leaves = number("BERTH_LEAVES", 40);
    const size_t machines = number("BERTH_MACHINES", 80);
    const auto zones = static_cast<size_t>(std::sqrt(static_cast<double>(leaves)));
    const auto cpu = static_cast<int64_t>(2 * machines / leaves + 1);
    Spec root{"root", 0, {}};
    for (size_t i = 0; i < leaves; ++i) {
        if (i < zones) root.below.push_back({fmt::format("z{}", i), 0, {}});
        root.below[i % zones].below.push_back(leaf(fmt::format("l{}", i), cpu));
    }
    Tree tree(root, 1);
    tree.run(seconds(60));
    const size_t quiet = tree.network.messages;
    tree.run(seconds(60));
    const double background = static_cast<double>(tree.network.messages - quiet) / 60;
    const size_t before = tree.network.messages;
    const auto began = tree.clock.now();
    Figures figures(tree);
    size_t made = 0;
    while (figures.placed() < machines && tree.clock.now() - began < minutes(60)) {
        for (int i = 0; i < 2 && made < machines; ++i) figures.make(fmt::format("m{}", made++));
        tree.run(milliseconds(10));
    }
    ASSERT_EQ(figures.placed(), machines);
    const double took = std::chrono::duration<double>(tree.clock.now() - began).count();
    const double messages = static_cast<double>(tree.network.messages - before) - background * took;
    fmt::print(
        "{} leaves, {} machines in {:.1f} s: {:.1f} messages and {:.3f} cpu seconds held in vain for each, "
        "from made to placed {:.0f} ms (median), {:.0f} ms (99 of 100); {:.0f} messages a second at rest\n",
        leaves, machines, took, messages / static_cast<double>(machines),
        figures.blocked() / static_cast<double>(machines), figures.waited_ms(50), figures.waited_ms(99), background);
}

}  // namespace
}  // namespace berth::fleet_test
