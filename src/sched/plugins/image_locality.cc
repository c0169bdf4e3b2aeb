#include <algorithm>

#include "sched/plugins/registry.h"

namespace berth::sched::plugins {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kLeast = 23 * kMiB;
constexpr int64_t kMostPerContainer = 1000 * kMiB;

bool on_node(const model::Node& node, const std::string& image) {
    return std::any_of(node.images.begin(), node.images.end(), [&](const auto& entry) {
        return std::find(entry.names.begin(), entry.names.end(), image) != entry.names.end();
    });
}

// Bytes already on the node, each image scaled by the part of all nodes that have it, from 23 MiB (0 points) to
// 1000 MiB a container (100 points).
class ImageLocality final : public NodeScorer {
public:
    PluginId plugin() const override { return PluginId::ImageLocality; }
    Scaling scaling() const override { return Scaling::None; }
    void raw(const Ask& ask, const View& ledger, std::span<const Row> rows, std::span<int64_t> points) const override {
        std::fill(points.begin(), points.end(), 0);
        const auto nodes = static_cast<double>(ledger.node_count());
        std::vector<std::pair<const std::string*, int64_t>> present;
        for (const auto& image : ask.spec->images) {
            const auto* entry = ledger.images().find(image);
            if (!entry) continue;
            const double part = static_cast<double>(entry->nodes) / nodes;
            present.emplace_back(&image, static_cast<int64_t>(static_cast<double>(entry->size) * part));
        }
        if (present.empty()) return;
        const int64_t most = kMostPerContainer * static_cast<int64_t>(ask.spec->images.size());
        for (size_t i = 0; i < rows.size(); ++i) {
            int64_t sum = 0;
            for (const auto& [image, bytes] : present) {
                if (on_node(ledger.node(rows[i]), *image)) sum += bytes;
            }
            points[i] = kMaxScore * (std::clamp(sum, kLeast, most) - kLeast) / (most - kLeast);
        }
    }
};

}  // namespace

std::shared_ptr<const Scorer> image_locality() {
    return std::make_shared<ImageLocality>();
}

}  // namespace berth::sched::plugins
