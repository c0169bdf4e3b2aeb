#include <algorithm>

#include "share/tree.h"

// Rule 3. What is left of a resource goes to those who ask for more of it, by weight, each at most what it asks for:
// first what an area's guarantee holds inside that area, then what the cluster has left.
namespace berth::share {
namespace {

constexpr double kNothing = 1e-12;  // of what is asked for: left over by rounding

class Filling {
public:
    explicit Filling(Tree& tree) : tree_(tree), rooms_(tree.inners.size()) {
        for (auto& rooms : rooms_) rooms.assign(tree.columns.size(), 0);
        open_.resize(tree.columns.size());
    }

    void run() {
        tree_.mixed.assign(tree_.columns.size(), 0);
        if (tree_.areas.empty() && (!tree_.problem.spread || all_full())) return;
        for (Inner& inner : tree_.inners) inner.x = inner.fixed;
        for (auto id = static_cast<NodeId>(tree_.nodes.size()); id-- > 1;) {
            tree_.nodes[id].inner == kNoIndex ? add_leaf(id) : add_inner(id);
        }
        if (!tree_.problem.spread) return;
        const Inner& root = tree_.inners[0];
        for (uint32_t r = 0; r < root.cap.size(); ++r) {
            const double left = root.cap[r] - root.x[r];
            if (tree_.full[r] == 0 && rooms_[0][r] > kNothing * root.u[r]) fill_root(r, left);
        }
    }

private:
    bool all_full() const {
        return std::all_of(tree_.full.begin(), tree_.full.end(), [](uint8_t full) { return full != 0; });
    }

    // A parent's sums: what is shared out below it, and how much more can be taken there. Children come first.
    void add_leaf(NodeId id) {
        const Node& node = tree_.nodes[id];
        const Node& parent = tree_.nodes[node.parent];
        for (Key& key : tree_.keys_of(node)) {
            if (node.parent == kRoot && tree_.full[key.column] != 0) continue;
            tree_.inner_of(parent).x[key.column] += key.x;
            if (node.weight <= 0 || key.x >= key.u) continue;
            rooms_[parent.inner][key.column] += key.u - key.x;
            if (node.parent != kRoot) continue;
            open_[key.column].push_back({&key, node.weight});
            if (!tree_.plain(node)) tree_.mixed[key.column] = 1;
        }
    }
    void add_inner(NodeId id) {
        const Node& node = tree_.nodes[id];
        const Node& parent = tree_.nodes[node.parent];
        Inner& inner = tree_.inner_of(node);
        for (uint32_t r = 0; r < inner.x.size(); ++r) {
            double& room = rooms_[node.inner][r];
            if (const double held = inner.b[r] - inner.x[r]; held > 0) {
                fill(id, r, held);
                room = std::max(0.0, room - held);
            }
            const double claimed = std::max(inner.x[r], inner.b[r]);
            room = std::max(0.0, std::min(room, inner.cap[r] - claimed));
            tree_.inner_of(parent).x[r] += claimed;
            if (node.weight <= 0 || room <= 0) continue;
            rooms_[parent.inner][r] += room;
            if (node.parent == kRoot) tree_.mixed[r] = 1;
        }
    }

    // How much more a child takes of a column.
    double room_of(NodeId id, uint32_t column) {
        const Node& node = tree_.nodes[id];
        if (node.inner != kNoIndex) return rooms_[node.inner][column];
        const Key* key = key_of(node, column);
        return key == nullptr ? 0 : std::max(0.0, key->u - key->x);
    }
    Key* key_of(const Node& node, uint32_t column) {
        for (Key& key : tree_.keys_of(node)) {
            if (key.column == column) return &key;
        }
        return nullptr;
    }

    // As fill(), of the root: there may be very many below it, and few who want more of one column.
    void fill_root(uint32_t column, double amount) {
        if (amount <= kNothing * tree_.inners[0].u[column]) return;
        const Node& root = tree_.nodes[kRoot];
        std::vector<NodeId> areas;
        vessels_.clear();
        for (const Open& open : open_[column]) vessels_.push_back({open.weight, open.key->u - open.key->x});
        for (NodeId c = root.children_begin; c < root.children_end; ++c) {
            if (tree_.nodes[c].inner == kNoIndex || tree_.nodes[c].weight <= 0 || room_of(c, column) <= 0) continue;
            areas.push_back(c);
            vessels_.push_back({tree_.nodes[c].weight, room_of(c, column)});
        }
        const double level = water_level(vessels_, amount);
        for (const Open& open : open_[column]) {
            const double room = open.key->u - open.key->x;
            open.key->x = open.weight * level >= room ? open.key->u : open.key->x + open.weight * level;
        }
        for (const NodeId c : areas) fill(c, column, std::min(room_of(c, column), tree_.nodes[c].weight * level));
    }

    void fill(NodeId id, uint32_t column, double amount) {
        const Node& node = tree_.nodes[id];
        if (amount <= kNothing * tree_.inner_of(node).u[column]) return;
        vessels_.clear();
        for (NodeId c = node.children_begin; c < node.children_end; ++c) {
            const double room = tree_.nodes[c].weight > 0 ? room_of(c, column) : 0;
            if (room > 0) vessels_.push_back({tree_.nodes[c].weight, room});
        }
        if (vessels_.empty()) return;
        const double level = water_level(vessels_, amount);
        for (NodeId c = node.children_begin; c < node.children_end; ++c) {
            const double room = tree_.nodes[c].weight > 0 ? room_of(c, column) : 0;
            if (room <= 0) continue;
            const double given = std::min(room, tree_.nodes[c].weight * level);
            if (tree_.nodes[c].inner != kNoIndex) {
                fill(c, column, given);
                rooms_[tree_.nodes[c].inner][column] -= given;
            } else {
                Key* key = key_of(tree_.nodes[c], column);
                key->x = given == room ? key->u : key->x + given;
            }
        }
    }

    struct Open {
        Key* key;
        double weight;
    };

    Tree& tree_;
    std::vector<std::vector<Open>> open_;     // the root's leaves that want more, by column
    std::vector<std::vector<double>> rooms_;  // by inner node and column
    std::vector<Vessel> vessels_;
};

}  // namespace

void fill_rest(Tree& tree) {
    Filling(tree).run();
}

}  // namespace berth::share
