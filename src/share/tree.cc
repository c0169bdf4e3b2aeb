#include "share/tree.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/saturating.h"
#include "share/above.h"

namespace berth::share {
namespace {

// The resources that somebody asks for, by name: the numbers of names differ from run to run.
void find_columns(const Problem& problem, Tree& tree) {
    std::vector<uint8_t> met;
    const auto meet = [&](ResourceId id, int64_t) {
        if (id.index >= met.size()) met.resize(id.index + 1U);
        if (met[id.index] == 0) tree.columns.push_back(id);
        met[id.index] = 1;
    };
    for (const auto& consumer : problem.consumers) {
        for (const auto& leaf : consumer.leaves) leaf.demand.for_each(meet);
    }
    std::sort(tree.columns.begin(), tree.columns.end(),
              [](ResourceId a, ResourceId b) { return model::resource_name(a) < model::resource_name(b); });
    tree.column_by_id.assign(met.size(), kNoIndex);
    for (uint32_t i = 0; i < tree.columns.size(); ++i) tree.column_by_id[tree.columns[i].index] = i;
}

using Families = std::map<std::string_view, std::vector<uint32_t>>;

// Children by their parent's name, each family by name. Who is below an infinite one is the cluster's own.
Families families_of(const Problem& problem) {
    std::vector<Named> names;
    for (const auto& consumer : problem.consumers) names.push_back({consumer.name, consumer.parent});
    const auto parents = above(names).parent;
    Families families;
    for (uint32_t i = 0; i < problem.consumers.size(); ++i) {
        const auto& consumer = problem.consumers[i];
        if (consumer.infinite) continue;
        const bool below = parents[i] != kNobody && !problem.consumers[parents[i]].infinite;
        families[below ? std::string_view(consumer.parent) : std::string_view()].push_back(i);
    }
    const auto by_name = [&](uint32_t a, uint32_t b) { return problem.consumers[a].name < problem.consumers[b].name; };
    for (auto& [parent, family] : families) {
        if (!std::is_sorted(family.begin(), family.end(), by_name)) std::sort(family.begin(), family.end(), by_name);
    }
    return families;
}

bool asks(const Leaf& leaf) {
    bool any = false;
    leaf.demand.for_each([&](ResourceId, int64_t amount) { any = any || amount > 0; });
    return any;
}

// `owner`: the consumer, when this is its only leaf.
void add_keys(Tree& tree, Node& node, const Leaf& leaf, const Consumer* owner) {
    node.keys_begin = static_cast<uint32_t>(tree.keys.size());
    leaf.demand.for_each([&](ResourceId id, int64_t amount) {
        if (amount <= 0) return;
        tree.keys.emplace_back().column = tree.column_by_id[id.index];
    });
    node.keys_end = static_cast<uint32_t>(tree.keys.size());
    std::sort(tree.keys.begin() + node.keys_begin, tree.keys.end(),
              [](const Key& a, const Key& b) { return a.column < b.column; });
    for (const Key& key : tree.keys_of(node)) {
        const ResourceId id = tree.columns[key.column];
        Stated& stated = tree.stated.emplace_back();
        stated.demand = leaf.demand.get(id);
        if (owner == nullptr) continue;
        stated.reserved = std::max<int64_t>(0, owner->reserved.get(id));
        stated.limit = limit_of(*owner, id);
    }
    tree.lay_pods(node);
}

uint32_t add_inner(Tree& tree) {
    const size_t m = tree.columns.size();
    Inner inner;
    for (auto* values : {&inner.u, &inner.b, &inner.fixed, &inner.x, &inner.reserved, &inner.stated})
        values->assign(m, 0);
    inner.cap.assign(m, kInfinity);
    tree.inners.push_back(std::move(inner));
    return static_cast<uint32_t>(tree.inners.size() - 1);
}

// The consumer's leaves that ask for anything, in the order of the names of their resources.
absl::InlinedVector<uint32_t, 4> leaves_of(const Tree& tree, const Consumer& consumer) {
    absl::InlinedVector<uint32_t, 4> leaves;
    for (uint32_t i = 0; i < consumer.leaves.size(); ++i) {
        if (asks(consumer.leaves[i])) leaves.push_back(i);
    }
    const auto set_of = [&](uint32_t leaf) {
        std::vector<uint32_t> set;
        consumer.leaves[leaf].demand.for_each([&](ResourceId id, int64_t amount) {
            if (amount > 0) set.push_back(tree.column_by_id[id.index]);
        });
        std::sort(set.begin(), set.end());
        return set;
    };
    if (leaves.size() > 1) {
        std::sort(leaves.begin(), leaves.end(), [&](uint32_t a, uint32_t b) { return set_of(a) < set_of(b); });
    }
    return leaves;
}

void add_children(Tree& tree, const Families& families, NodeId id) {
    const auto& consumers = tree.problem.consumers;
    const uint32_t own = tree.nodes[id].consumer;
    const auto begin = static_cast<NodeId>(tree.nodes.size());
    const auto family = families.find(own == kNoIndex ? std::string_view() : std::string_view(consumers[own].name));
    if (family != families.end()) {
        for (const uint32_t child : family->second) {
            Node node;
            node.parent = id;
            node.consumer = child;
            node.weight = static_cast<double>(std::max<int64_t>(0, consumers[child].weight));
            const auto leaves = leaves_of(tree, consumers[child]);
            if (families.contains(consumers[child].name) || leaves.size() > 1) {
                node.inner = add_inner(tree);
            } else if (leaves.size() == 1) {
                node.leaf = leaves.front();
                add_keys(tree, node, consumers[child].leaves[node.leaf], &consumers[child]);
            }
            node.limited = !consumers[child].hard.empty() || !consumers[child].borrowing_limit.empty() ||
                           !consumers[child].lending_limit.empty();
            tree.node_of[child] = static_cast<NodeId>(tree.nodes.size());
            tree.nodes.push_back(node);
        }
    }
    if (own != kNoIndex) {
        for (const uint32_t leaf : leaves_of(tree, consumers[own])) {
            Node node;
            node.parent = id;
            node.consumer = own;
            node.leaf = leaf;
            add_keys(tree, node, consumers[own].leaves[leaf], nullptr);
            tree.nodes.push_back(node);
        }
    }
    tree.nodes[id].children_begin = begin;
    tree.nodes[id].children_end = static_cast<NodeId>(tree.nodes.size());
}

}  // namespace

int64_t limit_of(const Consumer& consumer, ResourceId id) {
    const int64_t hard = consumer.hard.get(id, INT64_MAX);
    if (!consumer.borrowing_limit.has(id)) return hard;
    return std::min(hard, base::saturating_add(consumer.reserved.get(id), consumer.borrowing_limit.get(id)));
}

void Tree::lay_pods(Node& node) {
    const auto& pods = problem.consumers[node.consumer].leaves[node.leaf].pods;
    const auto mine = keys_of(node);
    if (pods.size() > node.runs_room) {
        node.runs_room = static_cast<uint32_t>(pods.size());
        node.runs_begin = static_cast<uint32_t>(runs.size());
        for (size_t i = 0; i < pods.size(); ++i) {
            runs.push_back({0, 0, static_cast<uint32_t>(sizes.size())});
            sizes.resize(sizes.size() + mine.size());
        }
    }
    node.runs_end = node.runs_begin;
    for (const PodRun& pod : pods) {
        Run& next = runs[node.runs_end];
        for (size_t k = 0; k < mine.size(); ++k) sizes[next.sizes + k] = pod.size.get(columns[mine[k].column]);
        next.count = pod.count;
        next.present = pod.present ? pod.count : 0;
        // Those that run and those that wait are counted together where they have one size.
        if (node.runs_end > node.runs_begin) {
            Run& last = runs[node.runs_end - 1];
            const bool in_order = !pod.present || last.present == last.count;
            if (in_order &&
                std::equal(sizes.begin() + last.sizes, sizes.begin() + last.sizes + static_cast<ptrdiff_t>(mine.size()),
                           sizes.begin() + next.sizes)) {
                last.count = base::saturating_add(last.count, next.count);
                last.present = base::saturating_add(last.present, next.present);
                continue;
            }
        }
        ++node.runs_end;
    }
}

bool Tree::plain(const Node& node) const {
    if (node.runs_end != node.runs_begin + 1) return false;
    const Run& run = runs[node.runs_begin];
    for (uint32_t k = node.keys_begin; k < node.keys_end; ++k) {
        int64_t all = 0;
        if (__builtin_mul_overflow(sizes[run.sizes + k - node.keys_begin], run.count, &all)) return false;
        if (all != stated[k].demand) return false;
    }
    return true;
}

Tree::Tree(const Problem& given) : problem(given) {
    find_columns(problem, *this);
    const Families families = families_of(problem);
    node_of.assign(problem.consumers.size(), kNoIndex);
    nodes.reserve(problem.consumers.size() + 1);
    nodes.emplace_back().inner = add_inner(*this);
    for (NodeId id = 0; id < nodes.size(); ++id) {
        if (nodes[id].inner != kNoIndex) add_children(*this, families, id);
    }
    note_constants();
}

void Tree::note_constants() {
    for (uint32_t i = 0; i < problem.consumers.size(); ++i) {
        if (problem.consumers[i].infinite) infinite.push_back(i);
    }
    users.resize(columns.size());
    for (NodeId id = 1; id < nodes.size(); ++id) {
        const Node& node = nodes[id];
        if (node.parent == kRoot && node.inner != kNoIndex) areas.push_back(id);
        for (const Key& key : keys_of(node)) {
            if (node.parent == kRoot) users[key.column].push_back(id);
        }
        if (node.leaf != kNoIndex && nodes[node.parent].consumer == node.consumer) parts.push_back(id);
        if (node.inner != kNoIndex || nodes[node.parent].consumer == node.consumer) continue;
        auto& below = inner_of(nodes[node.parent]).stated;
        problem.consumers[node.consumer].reserved.for_each([&](ResourceId resource, int64_t amount) {
            const uint32_t column = column_of(resource);
            if (column != kNoIndex) below[column] += static_cast<double>(amount);
        });
    }
}

}  // namespace berth::share
