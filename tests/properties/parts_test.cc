// Cores and devices together, and nobody is kind: virtual functions, network cards joint with GPUs on one PCIe switch,
// partitions, amplified cpu, cores reserved under load, topologies and Devices that vanish, shrink, fall ill and come
// back while pods hold what they named, records that others forged. A judge that reads the stored records alone looks
// at every pod that is bound: what it got is there, is nobody else's, and is its reservation's where that is
// Restricted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "model/allocated.h"
#include "model/device_request.h"
#include "part_records.h"
#include "stored_devices.h"
#include "town.h"

namespace berth::properties {
namespace {

constexpr int kThreads = 2;

struct Computer {
    int cores = 4, numas = 1, ratio = 100;  // percents
    Ids offline, reserved, by_node;         // by the topology, by the Node itself
    bool topology = true, device = true;    // whether it is stored
    bool honors = false;
    bool threads_went = false;  // some were offline once: one who heard late may take the other for a whole core
    int generation = 0;         // of its Device
    Cards cards;
    std::set<CardKey> ill, gone;

    int cpus() const { return cores * kThreads; }
    int numa_of(int cpu) const { return cpu % cores / (cores / numas); }
    bool gives(int cpu) const {
        return topology && cpu < cpus() && !offline.contains(cpu) && !reserved.contains(cpu) && !by_node.contains(cpu);
    }
    bool has(const CardKey& key) const { return device && cards.contains(key) && !gone.contains(key); }
    bool gives(const CardKey& key) const { return has(key) && !ill.contains(key); }
};

// What somebody's records say.
struct Had {
    std::string uid;
    bool cores_readable = true, devices_readable = true;
    std::set<std::string> unsaid;  // types that it asks for and does not name
    Ids cpus;
    std::map<int, int64_t> milli;  // cpu by NUMA node
    Shares shares;
    std::set<std::string> payers;  // uids
    bool restricted = false;       // a reservation
};

Ids some_of(base::Random& random, int cpus, uint64_t one_in) {
    Ids out;
    for (int id = 1; id < cpus; ++id) {
        if (random.chance(1, one_in)) out.insert(id);
    }
    return out;
}

std::string list_of(const Ids& ids) {
    return fmt::format("{}", fmt::join(ids, ","));
}

class PartsTown final : public Town {
public:
    explicit PartsTown(uint64_t seed) : Town(seed) {
        for (size_t i = 0; i < 1 + random_.below(2); ++i) {
            const std::string name = fmt::format("n{}", i);
            Computer& computer = computers_[name];
            computer.cores = static_cast<int>(2 * random_.between(1, 4));
            computer.numas = random_.chance(1, 2) ? 2 : 1;
            computer.ratio = random_.chance(1, 3) ? 150 : 100;
            computer.cards = random_cards(random_, name, 2);
            write_node(name);
            write_topology(name);
            write_device(name);
        }
        everybody_listens();
    }
    size_t forged() const { return forged_.size(); }

private:
    // ---- what is stored of a machine

    void write_node(const std::string& name) {
        const Computer& computer = computers_[name];
        auto node = std::make_shared<model::Node>();
        node->meta.name = node->meta.uid = name;
        node->meta.revision = ++revision_;
        node->allocatable = {
            {model::kCpu, computer.cpus() * 10 * computer.ratio}, {model::kPods, 20}, {model::kMemory, 1 << 30}};
        if (computer.ratio != 100) {
            node->meta.annotations.set(
                "node.koordinator.sh/resource-amplification-ratio",
                fmt::format(R"({{"cpu":{}.{:02}}})", computer.ratio / 100, computer.ratio % 100));
        }
        if (!computer.by_node.empty()) {
            node->meta.annotations.set(
                "node.koordinator.sh/reservation",
                fmt::format(R"({{"reservedCPUs":"{}","applyPolicy":"ReservedCPUsOnly"}})", list_of(computer.by_node)));
        }
        tell([node](ledger::Ledger& ledger) { ledger.put(node); });
    }
    void write_topology(const std::string& name) {
        const Computer& computer = computers_[name];
        if (!computer.topology) {
            topologies_.erase(name);
            return tell([name](ledger::Ledger& ledger) { ledger.remove_topology(name, ""); });
        }
        auto topology = std::make_shared<model::NodeTopology>();
        topology->meta.name = name;
        topology->meta.revision = ++revision_;
        for (int id = 0; id < computer.cpus(); ++id) {
            if (computer.offline.contains(id)) continue;
            topology->cpus.push_back({id, id % computer.cores, computer.numa_of(id), computer.numa_of(id)});
        }
        topology->reserved.assign(computer.reserved.begin(), computer.reserved.end());
        topologies_[name] = topology;
        tell([topology](ledger::Ledger& ledger) { ledger.put(topology); });
    }
    void write_device(const std::string& name) {
        const Computer& computer = computers_[name];
        if (!computer.device) {
            devices_.erase(name);
            return tell([name](ledger::Ledger& ledger) { ledger.remove_devices(name, ""); });
        }
        JsonArray list;
        for (const auto& [key, card] : computer.cards) {
            if (computer.has(key)) list.push_back(document_of(key, card, computer.gives(key)));
        }
        JsonObject meta{{"name", name}, {"uid", fmt::format("device-{}-{}", name, computer.generation)}};
        if (computer.honors) {
            meta["labels"] = JsonObject{{"node.koordinator.sh/gpu-partition-policy", "Honor"}};
            meta["annotations"] =
                JsonObject{{"scheduling.koordinator.sh/gpu-partitions",
                            R"({"1":[{"minors":[0]},{"minors":[3]}],"2":[{"minors":[0,2],"allocationScore":2},)"
                            R"({"minors":[1,3],"allocationScore":1}]})"}};
        }
        devices_[name] = stored_device(std::move(meta), std::move(list), ++revision_);
        tell([device = devices_[name]](ledger::Ledger& ledger) { ledger.put(device); });
    }

    // ---- what happens to it

    void disturb() override {
        auto found = computers_.begin();
        std::advance(found, static_cast<long>(random_.below(computers_.size())));
        const std::string name = found->first;
        Computer& computer = found->second;
        auto card = computer.cards.begin();
        std::advance(card, static_cast<long>(random_.below(computer.cards.size())));
        const uint64_t what = random_.below(9);
        if (what < 2) return forge(name);
        if (what == 2) computer.reserved = random_.chance(1, 2) ? Ids() : some_of(random_, computer.cpus(), 3);
        if (what == 3) computer.by_node = random_.chance(1, 2) ? Ids() : some_of(random_, computer.cpus(), 3);
        if (what == 4) computer.topology = !computer.topology || random_.chance(1, 2);
        if (what == 5) computer.offline = random_.chance(1, 2) ? Ids() : some_of(random_, computer.cpus(), 4);
        computer.threads_went = computer.threads_went || !computer.offline.empty();
        if (what == 6 && computer.ill.erase(card->first) == 0) computer.ill.insert(card->first);
        if (what == 7 && computer.gone.erase(card->first) == 0) computer.gone.insert(card->first);
        if (what == 8) {
            computer.device = !computer.device || random_.chance(1, 2);
            computer.honors = random_.chance(1, 3);
            ++computer.generation;
        }
        if (what == 3) return write_node(name);
        if (what == 2 || what == 4 || what == 5) return write_topology(name);
        if (what == 8 && devices_.contains(name)) {
            tell([name](ledger::Ledger& ledger) { ledger.remove_devices(name, ""); });
        }
        write_device(name);
    }

    // A pod that somebody bound without asking: its records name what they like.
    void forge(const std::string& node) {
        model::Pod pod;
        pod.meta.ns = "default";
        pod.meta.name = pod.meta.uid = fmt::format("f{}", forged_.size());
        pod.meta.labels = labels();
        const auto cpu = random_.below(10);
        pod.meta.annotations.set(model::kResourceStatus, random_.chance(1, 6)
                                                             ? R"({"cpuset":"x"})"
                                                             : fmt::format(R"({{"cpuset":"{}-{}"}})", cpu, cpu + 1));
        if (random_.chance(1, 2)) {
            pod.meta.annotations.set(
                model::kDeviceAllocated,
                random_.chance(1, 6)
                    ? "{"
                    : fmt::format(R"({{"gpu":[{{"minor":{},"resources":{{"koordinator.sh/gpu-core":"{}",)"
                                  R"("koordinator.sh/gpu-memory-ratio":"50"}}}}]}})",
                                  random_.below(5), random_.between(0, 100)));
        }
        pod.spec = spec(pod.meta.labels, {});
        pod.node = node;
        forged_.insert(pod.meta.uid);
        seen_.insert(pod.meta.uid);
        pods_[pod.meta.uid] = pod;
        tell([pod](ledger::Ledger& ledger) { ledger.put(pod); });
    }

    // ---- what is asked for

    model::Labels labels() override {
        model::Labels out;
        out.set("app", random_.chance(1, 2) ? "web" : "db");
        out.set("koordinator.sh/qosClass", random_.chance(2, 3) ? "LSR" : "LS");
        return out;
    }
    model::Labels wishes() override {
        model::Labels out;
        const auto pick = [&](std::string_view key, const std::vector<const char*>& texts) {
            if (const auto at = random_.below(texts.size() + 2); at < texts.size()) out.set(key, texts[at]);
        };
        pick(model::kResourceSpec,
             {R"({"requiredCPUBindPolicy":"FullPCPUs"})", R"({"preferredCPUBindPolicy":"SpreadByPCPUs"})"});
        if (random_.chance(1, 4)) {
            pick(model::kNumaTopologySpec,
                 {R"({"numaTopologyPolicy":"SingleNUMANode"})", R"({"numaTopologyPolicy":"BestEffort"})"});
        }
        pick(model::kDeviceHint,
             {R"({"rdma":{"vfSelector":{"matchLabels":{"a":"b"}}}})", R"({"gpu":{"requiredTopologyScope":"PCIe"}})"});
        pick(model::kDeviceJoint,
             {R"({"deviceTypes":["gpu","rdma"]})", R"({"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"})"});
        if (random_.chance(1, 6)) out.set(model::kGpuPartitionSpec, R"({"allocatePolicy":"BestEffort"})");
        return out;
    }
    std::shared_ptr<model::PodSpec> spec(const model::Labels& labels, const model::Labels& notes) override {
        const auto& names = model::device_resources();
        auto out = std::make_shared<model::PodSpec>();
        out->ns = "default";
        out->labels = labels;
        out->scheduler_name = "berth";
        out->scoring_cpu_milli = 1000 * random_.between(1, 3);
        out->requests = {{model::kCpu, out->scoring_cpu_milli}, {model::kPods, 1}};
        const int64_t percent = random_.chance(1, 4) ? 1 : random_.between(20, 100);
        const uint64_t what = random_.below(7);
        if (what == 0) out->requests.set(names.gpu, percent);
        if (what == 1) out->requests.set(names.gpu, 100 * random_.between(1, 2));
        if (what == 2) out->requests.set(names.vendors[0], random_.between(1, 2));
        if (what == 3) out->requests.set(names.ratio, percent);
        if (what == 4) out->requests.set(names.memory, random_.between(1, 900) << 20);
        if (random_.chance(1, 3)) out->requests.set(names.rdma, random_.chance(1, 2) ? 1 : 100);
        out->cores = model::read_core_wish(labels, notes);
        out->devices = model::read_device_wish(out->requests, notes);
        return out;
    }

    void tell_machines(ledger::Ledger& fresh) override {
        for (ledger::Row row = 0; row < truth_.rows(); ++row) {
            fresh.put(std::make_shared<const model::Node>(truth_.node(row)));
        }
        for (const auto& [name, topology] : topologies_) fresh.put(topology);
        for (const auto& [name, device] : devices_) fresh.put(device);
    }
    void compare(const ledger::Ledger& fresh) override {
        for (ledger::Row row = 0; row < truth_.rows(); ++row) {
            const ledger::Row there = fresh.row_of(truth_.name(row));
            const auto *cores = fresh.cores().at(there), *were = truth_.cores().at(row);
            if (cores && were) {
                EXPECT_EQ(cores->free.ids(), were->free.ids());
                for (size_t i = 0; i < were->numa.size(); ++i) EXPECT_EQ(cores->numa[i].used, were->numa[i].used);
            }
            EXPECT_EQ(fresh.core_fault(there).empty(), truth_.core_fault(row).empty());
            const auto *devices = fresh.devices().at(there), *had = truth_.devices().at(row);
            if (devices && had) {
                EXPECT_EQ(devices->free, had->free);
            }
            for (const auto type : model::kAllDeviceTypes) {
                EXPECT_EQ(fresh.device_fault(there, type).empty(), truth_.device_fault(row, type).empty());
            }
        }
    }

    // ---- the judge

    static Had had_by(const model::Pod& pod) {
        Had out;
        out.uid = pod.meta.uid;
        const auto text = [&](std::string_view key) {
            const std::string* found = pod.meta.annotations.find(key);
            return found ? *found : std::string();
        };
        const std::string cores = text(model::kResourceStatus), devices = text(model::kDeviceAllocated);
        out.cores_readable = cores != R"({"cpuset":"x"})";
        out.devices_readable = devices != "{";
        if (out.cores_readable) out.cpus = cpus_in(cores);
        if (out.cores_readable) out.milli = milli_in(cores);
        if (out.devices_readable && !devices.empty()) out.shares = shares_in(base::parse_json(devices).value());
        pod.spec->requests.for_each([&](model::ResourceId id, int64_t) {
            const auto& names = model::device_resources();
            if (names.is_gpu(id)) out.unsaid.insert("gpu");
            if (id == names.rdma) out.unsaid.insert("rdma");
        });
        for (const auto& [key, share] : out.shares) out.unsaid.erase(key.first);
        const std::string links = text(model::kReservationAllocated) + text(model::kReservationDraws);
        for (size_t at = links.find("\"uid\":\""); at != links.npos; at = links.find("\"uid\":\"", at + 1)) {
            out.payers.insert(links.substr(at + 7, links.find('"', at + 7) - at - 7));
        }
        return out;
    }
    std::vector<Had> reserved_on(const std::string& node) const {
        std::vector<Had> out;
        for (const auto& [uid, object] : reservations_) {
            if (object.node != node || object.phase != model::ReservationPhase::Available) continue;
            Had& had = out.emplace_back();
            had.uid = uid;
            had.cpus = Ids(object.which.cores.cpus.begin(), object.which.cores.cpus.end());
            for (const auto& [numa, amount] : object.which.cores.numa) had.milli[numa] = amount.get(model::kCpu);
            had.restricted = object.policy == model::AllocatePolicy::Restricted;
            if (object.which.devices.empty()) continue;
            had.shares = shares_in(Json(model::device_record_document(object.which.devices)));
        }
        return out;
    }

    // Whoever was bound, or reserved, since the last step.
    void judge() override {
        for (const auto& [uid, object] : reservations_) {
            if (object.phase != model::ReservationPhase::Available || !seen_.insert(uid).second) continue;
            SCOPED_TRACE(fmt::format("{} on {}", uid, object.node));
            std::vector<Had> reserved = reserved_on(object.node), pods;
            const auto self =
                std::find_if(reserved.begin(), reserved.end(), [&](const Had& had) { return had.uid == uid; });
            const Had had = *self;
            reserved.erase(self);
            for (const auto& [name, pod] : pods_) {
                if (pod.node == object.node) pods.push_back(had_by(pod));
            }
            judge_cores(computers_.at(object.node), had, pods, reserved);
            judge_devices(computers_.at(object.node), had, pods, reserved);
            judge_wish(computers_.at(object.node), had, *object.spec);
        }
        for (const auto& [uid, pod] : pods_) {
            if (!seen_.insert(uid).second) continue;
            SCOPED_TRACE(fmt::format("{} on {}", uid, pod.node));
            std::vector<Had> others;
            for (const auto& [name, other] : pods_) {
                if (name != uid && other.node == pod.node) others.push_back(had_by(other));
            }
            const Had had = had_by(pod);
            judge_cores(computers_.at(pod.node), had, others, reserved_on(pod.node));
            judge_devices(computers_.at(pod.node), had, others, reserved_on(pod.node));
            judge_amplified(pod);
            judge_wish(computers_.at(pod.node), had, *pod.spec);
            if (pod.spec->cores.numa == model::NumaPolicy::SingleNUMANode) {
                judge_numa(computers_.at(pod.node), had, others, reserved_on(pod.node));
            }
        }
    }
    // As many as it asks for, and of the kind.
    static void judge_wish(const Computer& computer, const Had& had, const model::PodSpec& spec) {
        const bool own = spec.labels.get("koordinator.sh/qosClass") == "LSR";
        EXPECT_EQ(static_cast<int64_t>(had.cpus.size()), own ? spec.requests.get(model::kCpu) / 1000 : 0);
        std::set<int> numas;
        for (const int cpu : had.cpus) {
            numas.insert(computer.numa_of(cpu));
            const int sibling = (cpu + computer.cores) % computer.cpus();
            const bool whole = spec.cores.required == model::CpuBinding::FullPCPUs && !computer.threads_went;
            EXPECT_TRUE(!whole || had.cpus.contains(sibling)) << "CPU " << cpu << " without the other of its core";
        }
        EXPECT_FALSE(spec.cores.numa == model::NumaPolicy::SingleNUMANode && numas.size() > 1)
            << "of several NUMA nodes";
    }
    // Of the cpu of each NUMA node, no more than it has for pods.
    static void judge_numa(const Computer& computer, const Had& had, const std::vector<Had>& others,
                           const std::vector<Had>& reserved) {
        for (const auto& [numa, milli] : had.milli) {
            int64_t there = 0, sum = milli;
            for (int cpu = 0; cpu < computer.cpus(); ++cpu) {
                if (computer.numa_of(cpu) == numa && computer.gives(cpu)) there += 1000;
            }
            const auto part = [numa = numa](const Had& of) {
                const auto found = of.milli.find(numa);
                return found == of.milli.end() ? 0 : found->second;
            };
            for (const Had& other : others) sum += part(other);
            for (const Had& other : reserved) {
                if (had.payers.contains(other.uid)) continue;
                int64_t left = part(other);
                for (const Had& owner : others) {
                    if (owner.payers.contains(other.uid)) left -= part(owner);
                }
                sum += std::max<int64_t>(0, left);
            }
            EXPECT_LE(sum, there) << "cpu of NUMA node " << numa;
        }
    }
    static void judge_cores(const Computer& computer, const Had& had, const std::vector<Had>& others,
                            const std::vector<Had>& reserved) {
        if (had.cpus.empty()) return;
        Ids taken;
        for (const int cpu : had.cpus) EXPECT_TRUE(computer.gives(cpu)) << "CPU " << cpu << " is not to be had";
        for (const Had& other : others) {
            EXPECT_TRUE(other.cores_readable) << "cores are given where nobody knows what " << other.uid << " has";
            for (const int cpu : other.cpus) {
                EXPECT_TRUE(taken.insert(cpu).second) << "cores are given where CPU " << cpu << " has two holders";
                EXPECT_FALSE(had.cpus.contains(cpu)) << "CPU " << cpu << " is " << other.uid << "'s";
                EXPECT_TRUE(cpu < computer.cpus() && !computer.offline.contains(cpu))
                    << "cores are given where " << other.uid << " has CPU " << cpu << ", which is not there";
            }
        }
        for (const Had& other : reserved) {
            const bool pays = had.payers.contains(other.uid);
            for (const int cpu : other.cpus) {
                EXPECT_FALSE(!pays && had.cpus.contains(cpu)) << "CPU " << cpu << " is " << other.uid << "'s";
            }
            if (!pays || !other.restricted || other.cpus.empty()) continue;
            EXPECT_TRUE(std::includes(other.cpus.begin(), other.cpus.end(), had.cpus.begin(), had.cpus.end()))
                << "it has cores beside those of " << other.uid << ", which is Restricted";
        }
    }
    static void judge_devices(const Computer& computer, const Had& had, const std::vector<Had>& others,
                              const std::vector<Had>& reserved) {
        std::set<std::string> types;
        for (const auto& [key, share] : had.shares) types.insert(key.first);
        for (const Had& other : others) {
            EXPECT_TRUE(types.empty() || other.devices_readable) << "nobody knows what " << other.uid << " has";
            for (const std::string& type : types) {
                EXPECT_FALSE(other.unsaid.contains(type)) << other.uid << " does not say which " << type << " it has";
            }
            for (const auto& [key, share] : other.shares) {
                if (!types.contains(key.first)) continue;
                EXPECT_TRUE(computer.has(key)) << other.uid << " has what is not there: " << key.first << key.second;
            }
        }
        for (const auto& [key, share] : had.shares) {
            SCOPED_TRACE(fmt::format("{} {}", key.first, key.second));
            ASSERT_TRUE(computer.gives(key)) << "it is not to be had";
            judge_share(computer.cards.at(key), key, had, others, reserved);
        }
        for (const Had& other : reserved) {
            if (!other.restricted || !had.payers.contains(other.uid)) continue;
            for (const std::string& type : types) {
                const bool holds = std::any_of(other.shares.begin(), other.shares.end(),
                                               [&](const auto& share) { return share.first.first == type; });
                for (const auto& [key, share] : had.shares) {
                    if (!holds || key.first != type) continue;
                    EXPECT_TRUE(other.shares.contains(key))
                        << key.first << key.second << " is beside " << other.uid << ", which is Restricted";
                }
            }
        }
    }
    // All that pods have of it, and what the reservations that do not pay keep for their owners, is no more than all.
    static void judge_share(const Card& card, const CardKey& key, const Had& had, const std::vector<Had>& others,
                            const std::vector<Had>& reserved) {
        const auto part = [&](const Had& of, const std::string& what) {
            const auto found = of.shares.find(key);
            return found == of.shares.end() || !found->second.use.contains(what) ? 0 : found->second.use.at(what);
        };
        for (const auto& [what, there] : card.has) {
            int64_t sum = part(had, what);
            for (const Had& other : others) sum += part(other, what);
            for (const Had& other : reserved) {
                if (had.payers.contains(other.uid)) continue;
                int64_t left = part(other, what);
                for (const Had& owner : others) {
                    if (owner.payers.contains(other.uid)) left -= part(owner, what);
                }
                sum += std::max<int64_t>(0, left);
            }
            EXPECT_LE(sum, there) << what;
        }
        for (const std::string& function : had.shares.at(key).functions) {
            EXPECT_TRUE(card.functions.contains(function)) << function << " is not there";
            for (const auto* list : {&others, &reserved}) {
                for (const Had& other : *list) {
                    const auto found = other.shares.find(key);
                    if (found == other.shares.end() || (list == &reserved && had.payers.contains(other.uid))) continue;
                    const auto& theirs = found->second.functions;
                    EXPECT_EQ(std::count(theirs.begin(), theirs.end(), function), 0) << function << ": " << other.uid;
                }
            }
        }
    }
    // A core of one's own counts more where cpu is amplified.
    void judge_amplified(const model::Pod& bound) const {
        const Computer& computer = computers_.at(bound.node);
        int64_t milli = 0;
        Ids own;
        for (const auto& [uid, pod] : pods_) {
            if (pod.node != bound.node) continue;
            const Had had = had_by(pod);
            own.insert(had.cpus.begin(), had.cpus.end());
            milli += pod.spec->requests.get(model::kCpu);
        }
        milli += static_cast<int64_t>(own.size()) * 10 * (computer.ratio - 100);
        EXPECT_LE(milli, computer.cpus() * 10 * computer.ratio) << "amplified cpu";
    }

    std::map<std::string, Computer> computers_;
    std::map<std::string, std::shared_ptr<const model::NodeTopology>> topologies_;
    std::map<std::string, std::shared_ptr<const model::Device>> devices_;
    std::set<std::string> seen_, forged_;
};

TEST(Parts, NothingIsGivenTwice) {
    live_in_towns([](uint64_t seed) { return std::make_unique<PartsTown>(seed); }, 60, {400, 30, 20});
}

}  // namespace
}  // namespace berth::properties
