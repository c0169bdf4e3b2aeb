#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sched/decide.h"

namespace berth::run {

// What came of one pending object.
struct Placement {
    bool is_reservation = false;
    std::string ns;
    std::string name;
    std::string node;         // empty: not placed
    std::string from;         // the node that it had to leave before; empty: none
    std::string reservation;  // the one it draws from
    std::map<std::string, model::Resources> charges;
    model::Which which;                 // of the node's parts
    std::vector<std::string> feasible;  // by name
    std::map<std::string, int64_t> scores;
    std::map<std::string, int64_t> reservation_scores;
    std::map<std::string, std::vector<std::string>> rejected;
    std::vector<std::string> victims;
    std::string message;  // "0/3 nodes are available: ...", when it is not placed
    std::string error;    // why it was not even tried
    bool gated = false;   // because it waits on purpose
    size_t turn = 0;      // how many steps went before what stands here; see Cluster::settle_before()
};

// The rows of one ledger in the order of their nodes' names; sorted anew when a node came or went.
class RowsByName {
public:
    std::span<const ledger::Row> of(const ledger::View& ledger);

private:
    std::vector<ledger::Row> rows_;
    std::optional<uint64_t> seen_;  // the epoch of which they are
};

// Where it could have gone, and why not elsewhere: of a thousand nodes a thousand entries, so they come in order.
void tell(Placement& answer, const sched::Verdict& verdict, const ledger::View& ledger, RowsByName& order);
void tell(Placement& answer, const sched::Strikes& strikes, const ledger::View& ledger, RowsByName& order);

}  // namespace berth::run
