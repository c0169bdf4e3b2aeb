#include "model/device_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <fstream>
#include <sstream>

namespace berth::model {
namespace {

constexpr const char* kRequestsPage = "docs/reference/device-requests.md";

std::vector<std::string> cells_in(const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) {
        const auto from = cell.find_first_not_of(" `"), to = cell.find_last_not_of(" `");
        cells.push_back(from == std::string::npos ? "" : cell.substr(from, to - from + 1));
    }
    return cells;
}

// The rows of the table with this head.
std::vector<std::vector<std::string>> rows_under(const std::string& head) {
    std::ifstream in(kRequestsPage);
    std::vector<std::vector<std::string>> rows;
    bool inside = false;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("| " + head)) {
            inside = true;
        } else if (inside && !line.starts_with("|")) {
            break;
        } else if (inside && !line.starts_with("|---")) {
            rows.push_back(cells_in(line));
        }
    }
    EXPECT_FALSE(rows.empty()) << kRequestsPage << " has no table with the head " << head;
    return rows;
}

// "gpu.shared: 2, gpu-memory: 16Gi"
Resources requests_in(const std::string& text) {
    Resources out{{kPods, 1}};
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) {
        part.erase(0, part.find_first_not_of(' '));
        const auto colon = part.find(": ");
        std::string name = part.substr(0, colon);
        if (name.find('/') == std::string::npos) name = "koordinator.sh/" + name;
        const ResourceId id = *intern_resource(name);
        out.set(id, amount_of(id, *Quantity::parse(part.substr(colon + 2))));
    }
    return out;
}

int64_t number(const std::string& text) {
    return text.empty() ? 0 : Quantity::parse(text)->value();
}

TEST(DeviceRequests, TheDocumentsCombinationsMeanWhatItSays) {
    for (const auto& row : rows_under("request | GPUs")) {
        const auto demand = read_device_demand(requests_in(row.at(0)), {});
        ASSERT_TRUE(demand.ok()) << row[0] << ": " << demand.error().message;
        ASSERT_EQ(demand->types.size(), 1u) << row[0];
        const DevicesWanted& gpus = demand->types.front();
        EXPECT_EQ(gpus.type, DeviceType::Gpu);
        EXPECT_EQ(gpus.count, number(row.at(1))) << row[0];
        EXPECT_EQ(gpus.core, number(row.at(2))) << row[0];
        EXPECT_EQ(gpus.ratio, number(row.at(3))) << row[0];
        EXPECT_EQ(gpus.memory, number(row.at(4))) << row[0];
        EXPECT_EQ(demand->vendors_only, row[0].find(".com/") != std::string::npos) << row[0];
    }
    for (const auto& row : rows_under("request | devices")) {
        const auto demand = read_device_demand(requests_in(row.at(0)), {});
        ASSERT_TRUE(demand.ok()) << row[0] << ": " << demand.error().message;
        ASSERT_EQ(demand->types.size(), 1u) << row[0];
        const DevicesWanted& wanted = demand->types.front();
        EXPECT_EQ(fmt::format("{} {}", wanted.count, name_of(wanted.type)), row.at(1));
        EXPECT_EQ(wanted.core, number(row.at(2)));
    }
}

TEST(DeviceRequests, TheDocumentsRefusalsAreRefused) {
    for (const auto& row : rows_under("refused | because")) {
        const auto demand = read_device_demand(requests_in(row.at(0)), {});
        ASSERT_FALSE(demand.ok()) << row[0];
        EXPECT_NE(demand.error().message.find(row.at(1)), std::string::npos) << demand.error().message;
        EXPECT_TRUE(demand.error().message.starts_with("invalid resource ")) << demand.error().message;
    }
    for (const char* text : {"rdma: 150", "fpga: 150"}) EXPECT_FALSE(read_device_demand(requests_in(text), {}).ok());
}

// Every set of names, by hand: the ten that go together and no other.
TEST(DeviceRequests, NoOtherCombinationIsAccepted) {
    const std::vector<std::string> names{"nvidia.com/gpu: 1", "amd.com/gpu: 1",      "dcu.com/gpu: 1",
                                         "gpu: 100",          "gpu.shared: 1",       "gpu-core: 50",
                                         "gpu-memory: 1Gi",   "gpu-memory-ratio: 50"};
    const std::vector<std::vector<size_t>> good{{0},    {1},    {2},    {3},    {6},       {7},
                                                {5, 6}, {5, 7}, {4, 6}, {4, 7}, {4, 5, 6}, {4, 5, 7}};
    for (unsigned set = 1; set < 1u << names.size(); ++set) {
        std::string text;
        std::vector<size_t> members;
        for (size_t i = 0; i < names.size(); ++i) {
            if (!(set >> i & 1)) continue;
            members.push_back(i);
            text += (text.empty() ? "" : ", ") + names[i];
        }
        const bool known = std::find(good.begin(), good.end(), members) != good.end();
        EXPECT_EQ(read_device_demand(requests_in(text), {}).ok(), known) << text;
        EXPECT_EQ(read_device_demand(requests_in(text + ", rdma: 1, fpga: 100"), {}).ok(), known) << text;
    }
}

TEST(DeviceRequests, NoAmountIsTooLarge) {
    for (const char* name :
         {"nvidia.com/gpu", "koordinator.sh/gpu", "koordinator.sh/gpu-memory", "koordinator.sh/rdma"}) {
        Resources requests{{*intern_resource(name), INT64_MAX / 100 * 100}};
        const auto demand = read_device_demand(requests, {});
        ASSERT_TRUE(demand.ok()) << demand.error().message;
        EXPECT_GT(demand->types.front().count, 0);
    }
    EXPECT_TRUE(read_device_demand({{*intern_resource("koordinator.sh/gpu"), 0}}, {})->empty());
    EXPECT_TRUE(read_device_demand({{*intern_resource("koordinator.sh/gpu"), -100}}, {})->empty());
}

}  // namespace
}  // namespace berth::model
