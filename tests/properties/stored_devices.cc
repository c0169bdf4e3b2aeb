#include "stored_devices.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/json_view.h"

namespace berth::properties {

Cards random_cards(base::Random& random, const std::string& node, int on_switch) {
    Cards out;
    const auto gpus = static_cast<int>(random.between(1, 4));
    for (int i = 0; i < gpus; ++i) {
        const int64_t memory = random.chance(1, 3) ? 1001 : 16'000;
        out[{"gpu", i}] = {
            {{"core", 100}, {"ratio", 100}, {"memory", memory << 20}}, {}, fmt::format("p{}", i / on_switch)};
    }
    for (int i = 0; i < static_cast<int>(random.below(3)); ++i) {
        Card& card = out[{"rdma", i}] = {{{"core", 100}}, {}, fmt::format("p{}", i)};
        for (size_t vf = 0; vf < random.below(4); ++vf) card.functions.insert(fmt::format("{}.{}.{}", node, i, vf));
    }
    return out;
}

JsonObject document_of(const CardKey& key, const Card& card, bool healthy) {
    JsonObject resources;
    for (const auto& [what, amount] : card.has) {
        const std::string resource = key.first == "rdma" ? "rdma"
                                     : what == "ratio"   ? "gpu-memory-ratio"
                                     : what == "memory"  ? "gpu-memory"
                                                         : "gpu-core";
        resources["koordinator.sh/" + resource] = fmt::format("{}", amount);
    }
    JsonArray functions;
    for (const auto& bus : card.functions) functions.push_back(JsonObject{{"minor", 0}, {"busID", bus}});
    return {{"type", key.first},
            {"minor", key.second},
            {"health", healthy},
            {"resources", resources},
            {"topology", JsonObject{{"socketID", 0}, {"nodeID", 0}, {"pcieID", card.pcie}}},
            {"vfGroups", JsonArray{JsonObject{{"labels", JsonObject{{"a", "b"}}}, {"vfs", functions}}}}};
}

std::shared_ptr<const model::Device> stored_device(JsonObject meta, JsonArray cards, uint64_t revision) {
    meta["resourceVersion"] = fmt::format("{}", revision);
    const JsonObject document{
        {"kind", "Device"}, {"metadata", std::move(meta)}, {"spec", JsonObject{{"devices", std::move(cards)}}}};
    base::JsonParser parser;
    const std::string text = base::to_text(document);
    auto read = model::read_device(*parser.parse(text));
    EXPECT_TRUE(read) << read.error().message;
    read->meta.revision = revision;
    return std::make_shared<const model::Device>(std::move(*read));
}

}  // namespace berth::properties
