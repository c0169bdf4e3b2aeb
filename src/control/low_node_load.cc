#include "control/low_node_load.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/int128.h"

namespace berth::control {
namespace {

constexpr int64_t kWhole = 10'000;  // hundredths of a percent

struct Part {
    int64_t Load::* of;
    std::optional<int64_t> LoadPercents::* percent;
    int64_t LoadMeasure::* weight;
};
constexpr std::array kParts{Part{&Load::cpu, &LoadPercents::cpu, &LoadMeasure::cpu_weight},
                            Part{&Load::memory, &LoadPercents::memory, &LoadMeasure::memory_weight}};

// amount x by / of, divided towards 0.
int64_t portion(int64_t amount, int64_t by, int64_t of) {
    return of == 0 ? 0 : static_cast<int64_t>(static_cast<int128>(amount) * by / of);
}

const Load& used_of(const LoadedNode& node, bool prod) {
    return prod ? node.prod : node.used;
}

// In hundredths of a percent of the nodes' sizes, each node counting alike.
int64_t mean_of(const std::vector<LoadedNode>& nodes, int64_t Load::* part, bool prod) {
    int64_t sum = 0;
    for (const auto& node : nodes) sum += portion(used_of(node, prod).*part, kWhole, node.size.*part);
    return nodes.empty() ? 0 : sum / static_cast<int64_t>(nodes.size());
}

int64_t weighted(const Load& used, const Load& size, const LoadMeasure& by) {
    int64_t sum = 0;
    for (const auto& part : kParts) sum += by.*part.weight * portion(used.*part.of, kWhole, size.*part.of);
    return sum;
}

// One look: at all, or at what production uses.
class Look {
public:
    Look(std::vector<LoadedNode>& nodes, const LoadRules& rules, const LoadMeasure& by, bool prod)
        : nodes_(nodes),
          rules_(rules),
          by_(by),
          prod_(prod),
          high_(prod ? by.prod_high : by.high),
          low_(prod ? by.prod_low : by.low),
          levels_(levels_of(nodes, by, prod)),
          all_(levels_of(nodes, by, false)) {}

    void balance(const Fits& fits, std::vector<LoadMove>& out) {
        if (!high_.cpu && !high_.memory) return;
        const auto from = sources();
        find_targets();
        const auto low = static_cast<int64_t>(targets_.size());
        if (low == 0 || low <= rules_.number_of_nodes || targets_.size() == nodes_.size()) return;
        for (const size_t source : from) {
            for (const size_t pod : in_order(source)) {
                auto& node = nodes_[source];
                if (!is_high(used_of(node, prod_), levels_[source], high_) || node.leaving >= rules_.limits.per_node)
                    break;
                if (spent()) return;
                LoadMove move{source, pod, prod_};
                if (take(move, fits)) out.push_back(move);
            }
        }
    }

private:
    void find_targets() {
        for (size_t i = 0; i < nodes_.size(); ++i) {
            auto& node = nodes_[i];
            node.used += std::exchange(node.coming, {});
            node.prod += std::exchange(node.coming_prod, {});
            if (!node.schedulable || !is_low(used_of(node, prod_), levels_[i], low_)) continue;
            if (prod_ && is_high(node.used, all_[i], by_.high)) continue;
            targets_.push_back(i);
            budget_ += room(i);
        }
    }
    Load room(size_t i) const {
        Load out = levels_[i].high;
        out -= used_of(nodes_[i], prod_);
        return out;
    }
    bool spent() const {
        return std::any_of(kParts.begin(), kParts.end(),
                           [&](const auto& part) { return high_.*part.percent && budget_.*part.of <= 0; });
    }
    std::vector<size_t> sources() const {
        const int64_t borne = by_.abnormal <= 1 ? 0 : by_.abnormal;
        std::vector<size_t> out;
        for (size_t i = 0; i < nodes_.size(); ++i) {
            if (nodes_[i].gives && nodes_[i].abnormal > borne && is_high(used_of(nodes_[i], prod_), levels_[i], high_))
                out.push_back(i);
        }
        const auto rank = [&](size_t i) {
            return std::tuple(-weighted(used_of(nodes_[i], prod_), nodes_[i].size, by_), nodes_[i].name);
        };
        std::sort(out.begin(), out.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
        return out;
    }
    std::vector<size_t> in_order(size_t source) const {
        const auto& node = nodes_[source];
        Load over;  // only what is short counts
        for (const auto& part : kParts) {
            if (high_.*part.percent && used_of(node, prod_).*part.of > levels_[source].high.*part.of)
                over.*part.of = node.size.*part.of;
        }
        const auto rank = [&](size_t i) {
            const auto& pod = node.pods[i];
            return std::tuple(-static_cast<int>(pod.band), pod.priority, -static_cast<int>(pod.kube),
                              -static_cast<int>(pod.qos), pod.deletion_cost, pod.eviction_cost,
                              -weighted(pod.used, over, by_), -pod.created.nanos, pod.name);
        };
        std::vector<size_t> out;
        for (size_t i = 0; i < node.pods.size(); ++i) {
            if (!prod_ || node.pods[i].band == model::PriorityBand::Prod) out.push_back(i);
        }
        std::sort(out.begin(), out.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
        return out;
    }
    bool take(LoadMove& move, const Fits& fits) {
        auto& from = nodes_[move.node];
        LoadedPod& pod = from.pods[move.pod];
        if (pod.used.cpu < 0) return false;  // it goes already
        const auto target = std::find_if(targets_.begin(), targets_.end(), [&](size_t i) {
            if (!rules_.node_fit) return true;
            Load used = nodes_[i].used, prod = nodes_[i].prod;
            used += pod.used;
            if (pod.band == model::PriorityBand::Prod) prod += pod.used;
            const auto& free = nodes_[i].free;
            return pod.asked.cpu <= free.cpu && pod.asked.memory <= free.memory && !is_high(used, all_[i], by_.high) &&
                   !(prod_ && is_high(prod, levels_[i], high_)) && fits(move, i);
        });
        if (target == targets_.end()) return false;
        move.target = *target;
        auto& to = nodes_[*target];
        to.used += pod.used;
        if (pod.band == model::PriorityBand::Prod) to.prod += pod.used;
        to.free -= pod.asked;
        from.used -= pod.used;
        if (pod.band == model::PriorityBand::Prod) from.prod -= pod.used;
        budget_ -= pod.used;
        ++from.leaving;
        pod.used.cpu = -1;
        return true;
    }

    std::vector<LoadedNode>& nodes_;
    const LoadRules& rules_;
    const LoadMeasure& by_;
    const bool prod_;
    const LoadPercents &high_, &low_;
    const std::vector<LoadLevels> levels_, all_;  // all_: of everything that is used
    std::vector<size_t> targets_;
    Load budget_;
};

}  // namespace

std::vector<LoadLevels> levels_of(const std::vector<LoadedNode>& nodes, const LoadMeasure& by, bool prod) {
    const auto& high = prod ? by.prod_high : by.high;
    const auto& low = prod ? by.prod_low : by.low;
    std::vector<LoadLevels> out(nodes.size());
    for (const auto& part : kParts) {
        const int64_t mean = by.by_deviation ? mean_of(nodes, part.of, prod) : 0;
        const auto level = [&](std::optional<int64_t> percent, int64_t sign) {
            const int64_t hundredths = percent.value_or(100) * (kWhole / 100);
            return by.by_deviation ? std::clamp<int64_t>(mean + sign * hundredths, 0, kWhole) : hundredths;
        };
        for (size_t i = 0; i < nodes.size(); ++i) {
            const int64_t size = nodes[i].size.*part.of;
            out[i].low.*part.of = portion(size, level(low.*part.percent, -1), kWhole);
            out[i].high.*part.of = portion(size, level(high.*part.percent, 1), kWhole);
        }
    }
    return out;
}

bool is_high(const Load& used, const LoadLevels& levels, const LoadPercents& high) {
    return std::any_of(kParts.begin(), kParts.end(),
                       [&](const auto& part) { return high.*part.percent && used.*part.of > levels.high.*part.of; });
}

bool is_low(const Load& used, const LoadLevels& levels, const LoadPercents& low) {
    return std::all_of(kParts.begin(), kParts.end(),
                       [&](const auto& part) { return !(low.*part.percent) || used.*part.of <= levels.low.*part.of; });
}

std::vector<LoadMove> moves_for(std::vector<LoadedNode> nodes, const LoadRules& rules, const LoadMeasure& by,
                                const Fits& fits) {
    std::vector<LoadMove> out;
    Look(nodes, rules, by, false).balance(fits, out);
    Look(nodes, rules, by, true).balance(fits, out);
    return out;
}

}  // namespace berth::control
