#pragma once

#include <memory>
#include <string>
#include <vector>

#include "network.h"
#include "run/fleet_broker.h"
#include "run/fleet_provider.h"
#include "run/fleet_scheduler.h"
#include "run/poollet.h"

namespace berth::fleet_test {

// Rows that outlive their provider.
struct Rows {
    std::map<std::string, run::LedgerRow> rows;
    std::string epoch = "1";
};
class MemoryJournal final : public run::FleetJournal {
public:
    explicit MemoryJournal(std::shared_ptr<Rows> rows) : rows_(std::move(rows)) {}
    Result<std::vector<run::LedgerRow>> read() override {
        std::vector<run::LedgerRow> out;
        for (const auto& [lineage, row] : rows_->rows) out.push_back(row);
        return out;
    }
    base::Status write(const std::vector<run::LedgerRow>& rows) override {
        for (const auto& row : rows) rows_->rows[row.lineage] = row;
        return {};
    }

private:
    const std::shared_ptr<Rows> rows_;
};

struct Spec {
    std::string name;
    int64_t cpu = 0;
    std::vector<Spec> below;
    std::string pinned = {};  // its broker asks only this pool
};

// A whole tree of pools in virtual time: real drivers, servers reduced to their store, and a network with weather.
class Tree {
public:
    struct Leaf {
        std::string name;
        int64_t cpu = 0;
        std::shared_ptr<Rows> rows = std::make_shared<Rows>();
        std::shared_ptr<run::FleetProvider> provider;
        Far far;
    };
    using Make = std::function<std::shared_ptr<run::Driver>(link::Wake)>;
    struct Actor {
        std::string name;
        Make make;
        std::function<void()> killed = {};
        std::shared_ptr<run::Driver> driver;  // null: it is dead
    };

    Tree(const Spec& root, uint64_t seed);
    ~Tree();

    void machine(const std::string& name, int64_t cpu, const std::string& pool = "");
    void remove_machine(const std::string& name);
    // One moment: what has arrived, and a turn of each who wants one. Then `check`.
    void step();
    void run(base::Duration time);
    void kill(size_t actor);  // and it begins anew
    Actor& actor(const std::string& name);
    void stop(const std::string& name);
    void reserve(const std::string& name, int64_t cpu);
    void release(const std::string& name);
    // A merge patch of a pool of the top layer.
    void edit_pool(const std::string& name, Json body);
    void remove_pool(const std::string& name);
    void add_leaf(const std::string& name, int64_t cpu, Labels labels = {});
    void add_scheduler();  // a second one of the top layer
    int64_t entries(const std::string& reservation) const;
    size_t layers() const { return layers_.size(); }
    crash::SmallServer& server(size_t layer) const { return layers_[layer]->server; }
    void resize(Leaf& leaf, int64_t cpu);

    // The machines of the top layer, by name: their pool and state.
    struct Seen {
        std::string pool, state, uid;
        bool going = false;
    };
    std::map<std::string, Seen> machines() const;
    std::map<std::string, int64_t> cpus;  // of Machines that were made here
    size_t reservations() const;

    base::ManualClock clock;
    base::Random random;
    Network network{clock, random};
    std::vector<std::unique_ptr<Leaf>> leaves;
    std::vector<Actor> actors;
    std::function<void(size_t actor)> check = [](size_t) {};  // whose turn it was
    std::function<void(size_t actor)> turned = [](size_t) {};

private:
    struct Layer {
        crash::SmallServer server{false};
    };
    void add_layer(Layer& layer, const Spec& spec);
    void add_pool(Layer& above, const Spec& pool, const Labels& labels = {});
    void add(std::string name, Make make, std::function<void()> killed = {});
    void begin(size_t actor);
    void turn(size_t actor);
    link::Request compute(const std::string& method, const std::string& plural, const std::string& name,
                          Json body = {});

    // Who is to be turned: those that were rung, and when the others have said that it is time.
    struct Bells {
        std::set<size_t> rung;
    };
    const std::shared_ptr<Bells> bells_ = std::make_shared<Bells>();
    std::set<std::pair<base::Instant, size_t>> due_;
    std::vector<base::Instant> next_;  // by actor: its entry there
    std::vector<std::unique_ptr<Layer>> layers_;
    std::vector<std::unique_ptr<Far>> fars_;
};

}  // namespace berth::fleet_test
