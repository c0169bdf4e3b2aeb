// No part of a device has two holders: random machines with GPUs, network cards and their virtual functions, pods that
// ask for wholes, for parts of a percent, for both together, reservations, deletions, restarts, devices that fall ill.
// A judge that reads the stored records alone looks at every step.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "base/json.h"
#include "model/allocated.h"
#include "model/device_request.h"
#include "part_records.h"
#include "stored_devices.h"
#include "town.h"

namespace berth::properties {
namespace {

class DeviceTown final : public Town {
public:
    explicit DeviceTown(uint64_t seed) : Town(seed) {
        for (size_t i = 0; i < 1 + random_.below(3); ++i) {
            auto node = std::make_shared<model::Node>();
            const std::string name = node->meta.name = fmt::format("n{}", i);
            node->allocatable = {{model::kCpu, 40'000}, {model::kPods, 30}, {model::kMemory, 1 << 30}};
            tell([node](ledger::Ledger& ledger) { ledger.put(node); });
            fill(name);
            write(name);
        }
        everybody_listens();
    }

private:
    void fill(const std::string& name) {
        nodes_[name] = random_cards(random_, name, static_cast<int>(random_.between(1, 2)));
        for (auto& [key, card] : nodes_[name]) {
            if (key.first == "gpu" && random_.chance(1, 8)) card.pcie.clear();
        }
    }

    // As it is stored, with a new revision. Some are ill.
    void write(const std::string& name) {
        JsonArray devices;
        for (const auto& [key, card] : nodes_[name]) {
            devices.push_back(document_of(key, card, !ill_.contains({name, key})));
        }
        const JsonObject notes{
            {"scheduling.koordinator.sh/gpu-partitions",
             R"({"2":[{"minors":[0,2],"allocationScore":2},{"minors":[1,3],"allocationScore":1}]})"}};
        JsonObject meta{{"name", name}, {"uid", "device-" + name}};
        if (random_.chance(1, 4)) meta["annotations"] = notes;
        stored_[name] = stored_device(std::move(meta), std::move(devices), ++revision_);
        tell([device = stored_[name]](ledger::Ledger& ledger) { ledger.put(device); });
    }
    void disturb() override {
        auto node = nodes_.begin();
        std::advance(node, static_cast<long>(random_.below(nodes_.size())));
        auto card = node->second.begin();
        std::advance(card, static_cast<long>(random_.below(node->second.size())));
        const std::pair key(node->first, card->first);
        if (ill_.erase(key) == 0) ill_.insert(key);
        write(node->first);
    }

    model::Labels labels() override {
        model::Labels out;
        out.set("app", random_.chance(1, 2) ? "web" : "db");
        return out;
    }
    model::Labels wishes() override {
        model::Labels out;
        const char* hints[] = {"",
                               "",
                               "",
                               R"({"gpu":{"requiredTopologyScope":"PCIe"}})",
                               R"({"rdma":{"vfSelector":{"matchLabels":{"a":"b"}}}})",
                               R"({"gpu":{"exclusivePolicy":"PCIeLevel"}})",
                               R"({"rdma":{"allocateStrategy":"ApplyForAll"}})",
                               R"({"gpu":{"exclusivePolicy":"DeviceLevel"}})"};
        if (const std::string hint = hints[random_.below(8)]; !hint.empty()) out.set(model::kDeviceHint, hint);
        const char* joint[] = {R"({"deviceTypes":["gpu","rdma"]})",
                               R"({"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"})"};
        if (random_.chance(1, 4)) out.set(model::kDeviceJoint, joint[random_.below(2)]);
        return out;
    }
    std::shared_ptr<model::PodSpec> spec(const model::Labels& labels, const model::Labels& notes) override {
        const auto& names = model::device_resources();
        auto out = std::make_shared<model::PodSpec>();
        out->ns = "default";
        out->labels = labels;
        out->scheduler_name = "berth";
        out->scoring_cpu_milli = 1000 * random_.between(1, 4);
        out->requests = {{model::kCpu, out->scoring_cpu_milli}, {model::kPods, 1}};
        const int64_t percent = random_.chance(1, 4) ? 1 : random_.between(1, 100);
        const int64_t bytes = random_.between(1, 900) << 20;
        switch (random_.below(8)) {
            case 0:
                out->requests.set(names.gpu, percent);
                break;
            case 1:
                out->requests.set(names.gpu, 100 * random_.between(1, 3));
                break;
            case 2:
                out->requests.set(names.memory, bytes);
                break;
            case 3:
                out->requests.set(names.core, percent);
                out->requests.set(names.memory, bytes);
                break;
            case 4:
                out->requests.set(names.shared, 2);
                out->requests.set(names.ratio, 2 * std::min<int64_t>(percent, 100));
                break;
            case 5:
                out->requests.set(names.vendors[0], random_.between(1, 2));
                break;
            case 6:
                out->requests.set(names.ratio, percent);
                break;
            default:
                break;
        }
        if (random_.chance(1, 3)) out->requests.set(names.rdma, random_.chance(1, 2) ? 1 : 100 * random_.between(1, 2));
        out->cores = model::read_core_wish(labels, notes);
        out->devices = model::read_device_wish(out->requests, notes);
        return out;
    }

    void tell_machines(ledger::Ledger& fresh) override {
        for (ledger::Row row = 0; row < truth_.rows(); ++row) {
            fresh.put(std::make_shared<const model::Node>(truth_.node(row)));
        }
        for (const auto& [name, device] : stored_) fresh.put(device);
    }
    void compare(const ledger::Ledger& fresh) override {
        for (const auto& [name, device] : stored_) {
            const auto& is = *fresh.devices().at(fresh.row_of(name));
            const auto& was = *truth_.devices().at(truth_.row_of(name));
            EXPECT_EQ(is.free, was.free) << "what is stored says who has which device";
            EXPECT_EQ(is.used, was.used);
        }
    }

    void judge() override {
        for (const auto& [node, cards] : nodes_) {
            judge_node(node, cards);
            for (const auto type : model::kAllDeviceTypes) {
                EXPECT_EQ(truth_.device_fault(truth_.row_of(node), type), "");
            }
        }
    }
    // All that pods have, and what reservations hold for owners who have not come yet, is no more than there is.
    void judge_node(const std::string& node, const Cards& cards) {
        std::map<std::string, Shares> held;  // by reservation
        for (const auto& [uid, object] : reservations_) {
            if (object.node != node || object.phase != model::ReservationPhase::Available) continue;
            if (!object.which.devices.empty()) {
                held[uid] = shares_in(Json(model::device_record_document(object.which.devices)));
            }
        }
        std::map<std::pair<std::string, int>, Use> by_pods, by_strangers;
        std::map<std::string, std::string> function_of;
        for (const auto& [uid, pod] : pods_) {
            if (pod.node != node) continue;
            const std::string* record = pod.meta.annotations.find(model::kDeviceAllocated);
            const Shares shares = record && !record->empty() ? shares_in(base::parse_json(*record).value()) : Shares();
            judge_record(pod, shares, cards);
            const auto links = model::read_links(pod.meta.annotations);
            for (const auto& [card, share] : shares) {
                bool owner = false;
                for (const auto& link : links->named()) {
                    owner = owner || (held.contains(link.uid) && held[link.uid].contains(card));
                }
                for (const auto& [what, amount] : share.use) {
                    by_pods[card][what] += amount;
                    if (!owner) by_strangers[card][what] += amount;
                }
                for (const auto& function : share.functions) {
                    EXPECT_TRUE(function_of.emplace(function, uid).second) << function << " has two holders";
                }
            }
        }
        std::map<std::pair<std::string, int>, Use> reserved;
        for (const auto& [uid, shares] : held) {
            for (const auto& [card, share] : shares) {
                for (const auto& [what, amount] : share.use) reserved[card][what] += amount;
            }
        }
        for (const auto& [card, one] : cards) {
            for (const auto& [what, there] : one.has) {
                EXPECT_LE(by_pods[card][what], there) << node << ": " << what << " of " << card.first << card.second;
                EXPECT_LE(by_strangers[card][what] + reserved[card][what], there)
                    << node << ": " << what << " of " << card.first << card.second << " is held for owners";
            }
        }
    }
    static void judge_record(const model::Pod& pod, const Shares& shares, const Cards& cards) {
        const auto& names = model::device_resources();
        int64_t gpus = 0;
        std::set<std::string> gpu_switches, rdma_switches;
        for (const auto& [card, share] : shares) {
            ASSERT_TRUE(cards.contains(card)) << pod.meta.name << " has what is not there";
            (card.first == "gpu" ? gpu_switches : rdma_switches).insert(cards.at(card).pcie);
            gpus += card.first == "gpu" ? 1 : 0;
        }
        const auto& asked = pod.spec->requests;
        const bool any = asked.has(names.gpu) || asked.has(names.memory) || asked.has(names.ratio);
        const int64_t wanted = asked.has(names.vendors[0])  ? asked.get(names.vendors[0])
                               : asked.has(names.shared)    ? asked.get(names.shared)
                               : asked.get(names.gpu) > 100 ? asked.get(names.gpu) / 100
                                                            : (any ? 1 : 0);
        EXPECT_EQ(gpus, wanted) << pod.meta.name;
        const std::string* hint = pod.meta.annotations.find(model::kDeviceHint);
        if (hint && hint->find("PCIe\"}") != std::string::npos && wanted > 1) {
            EXPECT_EQ(gpu_switches.size(), 1u) << pod.meta.name;
        }
        const std::string* joint = pod.meta.annotations.find(model::kDeviceJoint);
        if (joint && joint->find("SamePCIe") != std::string::npos && wanted > 0 && asked.has(names.rdma)) {
            EXPECT_EQ(gpu_switches, rdma_switches) << pod.meta.name;
        }
    }

    std::map<std::string, Cards> nodes_;
    std::map<std::string, std::shared_ptr<const model::Device>> stored_;
    std::set<std::pair<std::string, std::pair<std::string, int>>> ill_;
};

TEST(Devices, NoPartHasTwoHolders) {
    live_in_towns([](uint64_t seed) { return std::make_unique<DeviceTown>(seed); }, 60, {500, 50, 20});
}

}  // namespace
}  // namespace berth::properties
