#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "control/descheduler_config.h"
#include "control/test_cluster.h"

// A cluster of busy and idle nodes for whoever moves pods: what runs there, what it uses, budgets, and whatever a
// server and a scheduler would do about a write. It is kept in plain numbers, from which the objects are made.
namespace berth::properties {

struct Amounts {
    int64_t cpu = 0, memory = 0;
};

struct LoadMachine {
    Amounts size, reserved, system;
    std::string zone, pool;
    bool cordoned = false;
    std::string note;                     // what the descheduler keeps there
    std::optional<base::Time> measured;   // nullopt: never
    Amounts system_said;                  // by its metric
    std::map<std::string, Amounts> said;  // of pods, by name
};

struct LoadApp {
    int replicas = 1, least = 0;              // least: its budget's minAvailable; 0: it has none
    std::string zone;                         // that its pods need; "": any
    bool is_daemon = false, is_kept = false;  // kept: no selector has it
};

struct LoadTask {
    std::string app, uid, node;
    Amounts asked, used;
    int priority = 9000;
    base::Time born;
};

class LoadWorld : private control::Cluster {
public:
    using Cluster::now;

    LoadWorld(uint64_t seed, control::DeschedulerConfig config);

    // What the descheduler's controllers want now is done, until they want nothing; `watch` sees each write before.
    using Watch = std::function<void(const control::Writes& writes, bool chooses)>;
    void settle(const Watch& watch);
    void measure(bool all);  // or most nodes: of others the last metric stays
    void disturb();          // pods come and go, use changes, nodes are cordoned
    void restart();          // the descheduler is another process now
    void pass(base::Duration time) { now = now + time; }

    Amounts use_of(const std::string& node) const;  // in truth

    std::map<std::string, LoadMachine> machines;
    std::map<std::string, LoadApp> apps;
    std::map<std::string, LoadTask> tasks;         // by pod
    std::map<std::string, std::string> under_way;  // job by pod, of those that have not ended
    std::set<std::string> had_job;                 // uids whose job is there, ended or not
    std::map<std::string, int> evicted;            // by app
    std::mt19937_64 random;
    size_t moves = 0, refused = 0;

private:
    int64_t roll(int64_t first, int64_t last);
    void keep(const std::string& resource, const std::string& text, uint64_t revision) override;
    void put_node(const std::string& name);
    void put_pod(const std::string& name);
    void put_metric(const std::string& name);
    void start(const std::string& app, const std::string& node);
    void do_write(const control::Write& write);
    JsonObject place_room(const std::string& name, const Json& reservation);
    void evict(const std::string& name);
    void keep_books();
    Amounts free_on(const std::string& node) const;
    std::string place_for(const LoadTask& task, const std::string& only);

    control::DeschedulerConfig config_;
    std::map<std::string, std::string> rooms_;  // reservation -> pod that it is made for
    std::map<std::string, std::string> room_node_;
    uint64_t names_ = 0;
};

}  // namespace berth::properties
