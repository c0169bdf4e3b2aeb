#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "sched/decide.h"

namespace berth::sched {

// A table for tests, filled from objects as an operator writes them; a pod without nodeName is only remembered.
class TestTable {
public:
    TestTable();
    ~TestTable();

    Ledger ledger;

    void put(std::string_view yaml);
    const model::Pod& pod(const std::string& name) const { return pods_.at(name); }
    Ask ask(const std::string& name) const { return ask_for(pod(name), ledger); }
    Verdict decide(const std::string& name) const { return sched::decide(ask(name), ledger, default_profile()); }
    std::string why(const std::string& name) const { return diagnosis(decide(name).strikes, ledger); }
    // The names of the feasible nodes, sorted.
    std::vector<std::string> feasible(const std::string& name) const;
    void place(const std::string& name, const std::string& node);

private:
    void put_one(const Json& document);
    void put_pod(model::Pod pod);
    void put_reservation(model::Reservation reservation);
    std::map<std::string, model::Pod> pods_;
};

using Names = std::vector<std::string>;

// "n1" of 4 cpu, 8Gi and 110 pods.
inline std::string node_yaml(const std::string& name, const std::string& labels = "{}", const std::string& cpu = "4") {
    return "---\nkind: Node\nmetadata: {name: " + name + ", labels: " + labels + "}\nstatus: {allocatable: {cpu: \"" +
           cpu + "\", memory: 8Gi, pods: \"110\"}}\n";
}

}  // namespace berth::sched
