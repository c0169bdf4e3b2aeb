#include <algorithm>

#include "base/saturating.h"
#include "share/change.h"

namespace berth::share {
namespace {

constexpr double kMet = 1e-9;        // of what is asked for: this much less is all of it
constexpr double kRounding = 1e-12;  // of a share: it is not told apart from its guarantee

// What is shared out below each inner node but the root, after rules 1 to 3.
void add_shares(Tree& tree) {
    if (tree.areas.empty()) return;
    for (Inner& inner : tree.inners) inner.x = inner.fixed;
    for (auto id = static_cast<NodeId>(tree.nodes.size()); id-- > 1;) {
        const Node& node = tree.nodes[id];
        if (node.parent == kRoot) continue;
        auto& parent = tree.inner_of(tree.nodes[node.parent]).x;
        if (node.inner == kNoIndex) {
            for (const Key& key : tree.keys_of(node)) parent[key.column] += key.x;
            continue;
        }
        const Inner& inner = tree.inner_of(node);
        for (size_t r = 0; r < parent.size(); ++r) parent[r] += std::max(inner.x[r], inner.b[r]);
    }
}

void add_fair(const Tree& tree, const Node& node, Share& share) {
    const auto add = [&](uint32_t column, double amount) { share.fair.emplace_back(tree.columns[column], amount); };
    if (node.inner == kNoIndex) {
        for (const Key& key : tree.keys_of(node)) add(key.column, key.x);
    } else {
        const Inner& inner = tree.inner_of(node);
        for (uint32_t r = 0; r < inner.x.size(); ++r) {
            if (inner.u[r] > 0) add(r, std::max(inner.x[r], inner.b[r]) - inner.fixed[r]);
        }
    }
    std::sort(share.fair.begin(), share.fair.end());
}

// What stops a node: what it asks for, a limit, or the resource in which its share of the pool is largest; of equal
// ones one that is full, then the first by name.
class Bounds {
public:
    explicit Bounds(const Tree& tree) : tree_(tree), unmet_(tree.columns.size()), cut_(nullptr) {}

    std::string of(NodeId id) {
        std::fill(unmet_.begin(), unmet_.end(), 0);
        cut_ = nullptr;
        look(id);
        const Node& node = tree_.nodes[id];
        std::string_view name = cut_ != nullptr ? std::string_view(cut_) : std::string_view("demand");
        double most = -1;
        bool full = false;
        const auto weigh = [&](uint32_t r, double has, double guaranteed) {
            if (unmet_[r] == 0 || tree_.pool[r] == kInfinity) return;
            const double beyond = has - guaranteed > kRounding * has ? has - guaranteed : 0;
            const double share = tree_.pool[r] > 0 ? beyond / tree_.pool[r] : 0;
            const bool larger = share > most * (1 + kMet) + 1e-300;
            const bool equal = !larger && share >= most * (1 - kMet);
            if (!larger && !(equal && tree_.full[r] != 0 && !full)) return;
            most = std::max(most, share);
            full = tree_.full[r] != 0;
            name = model::resource_name(tree_.columns[r]);
        };
        if (node.inner == kNoIndex) {
            for (const Key& key : tree_.keys_of(node)) weigh(key.column, key.x, key.b);
        } else {
            const Inner& inner = tree_.inner_of(node);
            for (uint32_t r = 0; r < inner.x.size(); ++r) weigh(r, inner.x[r], inner.b[r]);
        }
        return std::string(name);
    }

private:
    void look(NodeId id) {
        const Node& node = tree_.nodes[id];
        if (node.cut != nullptr) cut_ = node.cut;
        bool met = true;
        for (const Key& key : tree_.keys_of(node)) met = met && key.x >= key.u * (1 - kMet);
        if (!met) {
            for (const Key& key : tree_.keys_of(node)) unmet_[key.column] = 1;
        }
        for (NodeId c = node.children_begin; c < node.children_end; ++c) look(c);
    }

    const Tree& tree_;
    std::vector<uint8_t> unmet_;  // by column: a leaf below needs it and has not all it asks for
    const char* cut_;
};

// The infinite ones get what they ask for, in the order of their names, as far as there is any.
void serve_infinite(const Problem& problem, std::vector<Share>& shares) {
    std::vector<uint32_t> infinite;
    for (uint32_t i = 0; i < problem.consumers.size(); ++i) {
        if (problem.consumers[i].infinite) infinite.push_back(i);
    }
    std::sort(infinite.begin(), infinite.end(),
              [&](uint32_t a, uint32_t b) { return problem.consumers[a].name < problem.consumers[b].name; });
    Resources left = problem.capacity;
    for (const uint32_t i : infinite) {
        Resources asked;
        for (const auto& leaf : problem.consumers[i].leaves) {
            asked.add(leaf.demand);
            int64_t pods = 0;
            for (const auto& run : leaf.pods) pods = base::saturating_add(pods, run.count);
            shares[i].pods.push_back(pods);
        }
        asked.for_each([&](ResourceId id, int64_t amount) {
            const int64_t served = std::min(amount, left.get(id, INT64_MAX));
            shares[i].deserved.set(id, served);
            shares[i].fair.emplace_back(id, static_cast<double>(served));
            if (left.has(id)) left.set(id, left.get(id) - served);
        });
        shares[i].bound_by = "demand";
    }
}

}  // namespace

double Share::fair_of(ResourceId id) const {
    for (const auto& [resource, amount] : fair) {
        if (resource == id) return amount;
    }
    return 0;
}

struct Solver::State {
    explicit State(const Problem& problem) : tree(problem) {}
    Tree tree;
    Whole whole;
    bool fair_due = false;        // what rule 3 gives has changed
    std::vector<Share> infinite;  // by consumer; empty ones for all others, none where nobody is infinite
    void fill_again();
};

Solver::Solver(Problem problem) : problem_(std::move(problem)) {
    build();
}

Solver::~Solver() = default;

void Solver::build() {
    state_ = std::make_unique<State>(problem_);
    built_ = due_ = true;
}

void Solver::change(size_t consumer, size_t leaf, Leaf wish) {
    auto& leaves = problem_.consumers[consumer].leaves;
    bool same = leaf < leaves.size() && leaves[leaf].demand.size() == wish.demand.size();
    wish.demand.for_each(
        [&](ResourceId id, int64_t amount) { same = same && amount > 0 && leaves[leaf].demand.get(id) > 0; });
    if (leaf >= leaves.size()) leaves.resize(leaf + 1);
    leaves[leaf] = std::move(wish);
    built_ = built_ && same;
    const NodeId top = built_ ? state_->tree.node_of[consumer] : kNoIndex;
    if (top == kNoIndex) {
        due_ = true;
        return;
    }
    Tree& tree = state_->tree;
    Change change(tree, top);
    const auto update = [&](Node& node) {
        if (node.leaf != leaf || node.consumer != consumer) return;
        for (uint32_t k = node.keys_begin; k < node.keys_end; ++k)
            tree.stated[k].demand = leaves[leaf].demand.get(tree.columns[tree.keys[k].column]);
        tree.lay_pods(node);
    };
    update(tree.nodes[top]);
    for (NodeId c = tree.nodes[top].children_begin; c < tree.nodes[top].children_end; ++c) update(tree.nodes[c]);
    due_ = due_ || !change.settle(state_->whole);
    state_->fair_due = problem_.spread;
}

void Solver::set_capacity(Resources capacity) {
    due_ = due_ || capacity != problem_.capacity;
    problem_.capacity = std::move(capacity);
}

void Solver::solve() {
    if (!built_) build();
    if (!due_) return;
    Tree& tree = state_->tree;
    guarantee(tree);
    raise_levels(tree);
    fill_rest(tree);
    add_shares(tree);
    round_to_pods(tree, state_->whole);
    state_->infinite.clear();
    for (const NodeId node : tree.node_of) {
        if (node != kNoIndex || !state_->infinite.empty()) continue;
        state_->infinite.resize(problem_.consumers.size());
        serve_infinite(problem_, state_->infinite);
    }
    due_ = state_->fair_due = false;
    ++times_;
}

// Rule 3 once more, from where rule 2 ended.
void Solver::State::fill_again() {
    for (NodeId id = 1; id < tree.nodes.size(); ++id) {
        for (Key& key : tree.keys_of(tree.nodes[id])) key.x = std::max(key.b, tree.tau[id] * key.u);
    }
    fill_rest(tree);
    add_shares(tree);
    fair_due = false;
}

Resources Solver::deserved(size_t consumer) const {
    const NodeId id = state_->tree.node_of[consumer];
    if (id == kNoIndex) return state_->infinite[consumer].deserved;
    Share share;
    tell_whole(state_->tree, state_->whole, id, share);
    return std::move(share.deserved);
}

Share Solver::share(size_t consumer) const {
    if (state_->fair_due) state_->fill_again();
    const Tree& tree = state_->tree;
    const NodeId id = tree.node_of[consumer];
    if (id == kNoIndex) return state_->infinite[consumer];
    Share share;
    tell_whole(tree, state_->whole, id, share);
    add_fair(tree, tree.nodes[id], share);
    share.bound_by = Bounds(tree).of(id);
    share.scaled = tree.nodes[id].scaled;
    return share;
}

std::vector<Share> solve(const Problem& problem) {
    Solver solver(problem);
    solver.solve();
    std::vector<Share> shares;
    for (size_t i = 0; i < problem.consumers.size(); ++i) shares.push_back(solver.share(i));
    return shares;
}

}  // namespace berth::share
