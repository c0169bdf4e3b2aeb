#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/random.h"
#include "share/problem.h"

// Rule 2 through a tree of areas, against a slow walk that takes small steps and knows only the definition: a leaf at
// level l has tau = min(1, min over r of (b[r] + l S[r]) / u[r]); a child's level is its weight times its parent's
// inner clock; a node's level grows by what it takes, in the resource in which it grows fastest; a resource that is
// full stops whoever needs more of it.
namespace berth::share {
namespace {

using base::Random;

constexpr double kStep = 2e-4;  // of a leaf's way, at most

std::vector<ResourceId> some_resources() {
    return {model::kCpu, model::kMemory, *model::intern_resource("example.com/a")};
}

class SlowTree {
public:
    SlowTree(const Problem& problem, const std::vector<ResourceId>& resources) {
        for (const ResourceId id : resources) {
            double reserved = 0;
            for (const auto& consumer : problem.consumers) reserved += static_cast<double>(consumer.reserved.get(id));
            capacity_.push_back(static_cast<double>(problem.capacity.get(id)));
            pool_.push_back(std::max(capacity_.back() - reserved, 1e-9 * capacity_.back()));
        }
        full_.assign(resources.size(), false);
        for (const auto& consumer : problem.consumers) {
            Node node;
            node.weight = static_cast<double>(consumer.weight);
            for (const ResourceId id : resources) {
                const double u =
                    consumer.leaves.empty() ? 0 : static_cast<double>(consumer.leaves.front().demand.get(id));
                node.u.push_back(u);
                node.b.push_back(std::min(u, static_cast<double>(consumer.reserved.get(id))));
            }
            nodes_.push_back(node);
        }
        for (size_t i = 0; i < problem.consumers.size(); ++i) {
            for (size_t k = 0; k < problem.consumers.size(); ++k) {
                if (problem.consumers[k].parent == problem.consumers[i].name) nodes_[i].children.push_back(k);
            }
            if (problem.consumers[i].parent.empty()) root_.push_back(i);
        }
        for (auto& node : nodes_) stand(node);
    }

    void run() {
        while (true) {
            std::vector<double> rate(capacity_.size(), 0);
            for (const size_t child : root_) add(rate, slope(child), nodes_[child].weight);
            double fastest = 0;
            for (const size_t child : root_) fastest = std::max(fastest, way(child, nodes_[child].weight));
            if (fastest <= 0) return;
            double step = kStep / fastest;
            for (size_t r = 0; r < rate.size(); ++r) {
                if (!full_[r] && rate[r] > 0) step = std::min(step, std::max(0.0, (capacity_[r] - total(r)) / rate[r]));
            }
            for (const size_t child : root_) move(child, nodes_[child].weight * step);
            fill();
        }
    }

    double share(size_t consumer, size_t resource) const { return nodes_[consumer].x[resource]; }

private:
    struct Node {
        double weight = 1;
        std::vector<size_t> children;
        std::vector<double> u, b, x;
        double level = 0, tau = 0, most = 1;
    };

    static void add(std::vector<double>& sum, const std::vector<double>& more, double times) {
        for (size_t r = 0; r < sum.size(); ++r) sum[r] += times * more[r];
    }
    // The line that counts for a leaf that moves on; none: it stands.
    size_t line(const Node& node) const {
        size_t best = SIZE_MAX;
        double least = node.most;
        for (size_t r = 0; r < pool_.size(); ++r) {
            if (node.u[r] <= 0) continue;
            const double tau = (node.b[r] + node.level * pool_[r]) / node.u[r];
            if (tau < least) {
                least = tau;
                best = r;
            }
        }
        return best;
    }
    void stand(Node& node) {
        const size_t at = line(node);
        node.tau = at == SIZE_MAX ? node.most : (node.b[at] + node.level * pool_[at]) / node.u[at];
        node.x.assign(pool_.size(), 0);
        for (size_t r = 0; r < pool_.size(); ++r) node.x[r] = std::max(node.b[r], node.tau * node.u[r]);
    }
    // What grows below a node by its level, in every resource.
    std::vector<double> slope(size_t id) const {
        const Node& node = nodes_[id];
        std::vector<double> out(pool_.size(), 0);
        if (node.children.empty()) {
            const size_t at = line(node);
            if (at == SIZE_MAX) return out;
            for (size_t r = 0; r < pool_.size(); ++r) {
                if (node.tau * node.u[r] >= node.b[r]) out[r] = node.u[r] * pool_[at] / node.u[at];
            }
            return out;
        }
        for (const size_t child : node.children) add(out, slope(child), nodes_[child].weight);
        const double most = pace(out);
        for (double& one : out) one = most > 0 ? one / most : 0;
        return out;
    }
    double pace(const std::vector<double>& growth) const {
        double most = 0;
        for (size_t r = 0; r < pool_.size(); ++r) most = std::max(most, growth[r] / pool_[r]);
        return most;
    }
    // How much of its own level goes to its children's clock.
    double clock(size_t id, double by) const {
        std::vector<double> growth(pool_.size(), 0);
        for (const size_t child : nodes_[id].children) add(growth, slope(child), nodes_[child].weight);
        const double most = pace(growth);
        return most > 0 ? by / most : 0;
    }
    // The fastest of the leaves' ways, when the node's level grows so fast.
    double way(size_t id, double by) const {
        const Node& node = nodes_[id];
        if (node.children.empty()) {
            const size_t at = line(node);
            return at == SIZE_MAX ? 0 : by * pool_[at] / node.u[at];
        }
        const double ticks = clock(id, by);
        double fastest = 0;
        for (const size_t child : node.children) fastest = std::max(fastest, way(child, nodes_[child].weight * ticks));
        return fastest;
    }
    void move(size_t id, double by) {
        Node& node = nodes_[id];
        if (node.children.empty()) {
            node.level += by;
            return stand(node);
        }
        const double ticks = clock(id, by);
        for (const size_t child : node.children) move(child, nodes_[child].weight * ticks);
    }
    double total(size_t r) const {
        double sum = 0;
        for (const auto& node : nodes_) sum += node.x[r];
        return sum;
    }
    void fill() {
        for (size_t r = 0; r < pool_.size(); ++r) {
            if (full_[r] || total(r) < capacity_[r] * (1 - 1e-9)) continue;
            full_[r] = true;
            for (auto& node : nodes_) {
                if (node.u[r] > 0) node.most = std::min(node.most, std::max(node.tau, node.b[r] / node.u[r]));
            }
        }
    }

    std::vector<double> capacity_, pool_;
    std::vector<bool> full_;
    std::vector<Node> nodes_;
    std::vector<size_t> root_;
};

// Areas in areas, each namespace with one set of resources; guarantees take at most half of the cluster.
Problem random_tree(Random& random, const std::vector<ResourceId>& resources) {
    Problem problem;
    problem.spread = false;
    const int64_t areas = random.between(1, 3), leaves = random.between(2, 7);
    for (const ResourceId id : resources) problem.capacity.set(id, random.between(500, 3000));
    for (int64_t i = 0; i < areas; ++i) {
        Consumer area;
        area.name = "area-" + std::to_string(i);
        area.weight = random.between(1, 4);
        if (i > 0 && random.chance(1, 2))
            area.parent = "area-" + std::to_string(random.below(static_cast<uint64_t>(i)));
        problem.consumers.push_back(area);
    }
    for (int64_t i = 0; i < leaves; ++i) {
        Consumer consumer;
        consumer.name = "leaf-" + std::to_string(i);
        consumer.weight = random.between(1, 4);
        if (random.chance(3, 4)) consumer.parent = "area-" + std::to_string(random.below(static_cast<uint64_t>(areas)));
        Leaf leaf;
        for (const ResourceId id : resources) {
            if (!random.chance(2, 3)) continue;
            leaf.demand.set(id, random.between(50, 2500));
            const int64_t most = std::min(leaf.demand.get(id), problem.capacity.get(id) / (2 * leaves));
            if (random.chance(1, 3)) consumer.reserved.set(id, random.between(1, most));
        }
        if (leaf.demand.empty()) leaf.demand.set(resources.front(), random.between(50, 2500));
        consumer.leaves.push_back(std::move(leaf));
        problem.consumers.push_back(std::move(consumer));
    }
    return problem;
}

TEST(ShareTree, TheSweepIsTheWalkInSmallSteps) {
    const char* given = std::getenv("SEED");
    const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
    const auto resources = some_resources();
    for (uint64_t seed = first; seed < first + (given != nullptr ? 1 : 100); ++seed) {
        SCOPED_TRACE(testing::Message() << "SEED=" << seed);
        Random random(seed);
        const Problem problem = random_tree(random, resources);
        SlowTree slow(problem, resources);
        slow.run();
        const auto fast = solve(problem);
        for (size_t i = 0; i < fast.size(); ++i) {
            if (problem.consumers[i].leaves.empty()) continue;
            for (size_t r = 0; r < resources.size(); ++r) {
                const int64_t asked = problem.consumers[i].leaves.front().demand.get(resources[r]);
                EXPECT_NEAR(fast[i].fair_of(resources[r]), slow.share(i, r), 0.003 * static_cast<double>(asked) + 1e-6)
                    << problem.consumers[i].name << " " << model::resource_name(resources[r]);
            }
        }
        if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace berth::share
