#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::properties {

// Judges placements by what is written down alone: nodes, reservations and bound pods with their annotations. It knows
// one equation, and counts it anew each time, in plain integers of its own:
//   used(node) = requests of pods that no live reservation pays for + sum over live ones of max(reserved, charged)
// It shares no code with the ledger and the scheduler.
class NodeJudge {
public:
    using Amounts = std::map<std::string, int64_t>;  // cpu in thousandths; pods: slots

    struct Reservation {
        enum class Policy { Default, Aligned, Restricted };
        std::string node;
        std::string owner;  // label app of the pods it is for
        Amounts reserved;
        Amounts held_back;
        std::set<std::string> restricted;  // empty: everything reserved
        Policy policy = Policy::Default;
        int64_t order = 0;
        int64_t created = 0;
        bool once = true;
        bool live = false;
        bool waiting = false;
        bool open = true;  // to new owners
    };
    struct Pod {
        std::string node;
        std::string app;
        Amounts requests;
        std::string allocated;  // the annotations, as they are written
        std::string draws;
    };
    // Of a node, without and with the reservations that wait there.
    struct Use {
        Amounts used;
        Amounts with_waiting;
        Amounts pods;  // the requests alone
    };

    Use use_of(const std::string& node) const;
    // What is wrong with the pod that was placed last, given the use of its node before; empty: nothing.
    std::vector<std::string> faults_of(const std::string& pod, const Use& before) const;
    // What is wrong anywhere; for clusters where nobody else places anything.
    std::vector<std::string> faults() const;
    // Where the pod could go without a node being oversold: by some way of charging it that section 4 allows. Nodes
    // that are too full already are left out.
    std::vector<std::string> could_go(const Pod& pod) const;

    std::map<std::string, Amounts> nodes;  // allocatable
    std::map<std::string, Reservation> reservations;
    std::map<std::string, Pod> pods;

private:
    using Parts = std::vector<std::pair<std::string, Amounts>>;  // by reservation, the nominated one first

    static Parts parts_of(const Pod& pod);
    Amounts charged(const std::string& reservation) const;
    Amounts remaining(const std::string& reservation) const;
    bool pays(const std::string& reservation, const Pod& pod) const;
    bool over(const Amounts& used, const std::string& node) const;
    bool withheld(const std::string& reservation, const Pod& pod) const;
    bool useful(const std::string& reservation, const Pod& pod) const;
    std::vector<std::string> matched(const Pod& pod, const std::string& node) const;
    bool holds_with(Pod pod, const std::string& node, const std::vector<std::string>& from) const;
    bool could_go_to(const Pod& pod, const std::string& node) const;
    void judge_reservation(const std::string& uid, std::vector<std::string>& out) const;
    void judge_owners(const std::string& uid, const Reservation& reservation, std::vector<std::string>& out) const;
};

}  // namespace berth::properties
