#pragma once

#include <map>
#include <set>
#include <string>

#include "small_server.h"

namespace berth::crash {

// What must hold of the stored objects whatever happened, computed from their JSON alone: it shares no code with
// whoever placed them.
//   I1  for cpu and slots of each node: requests of pods charged to no live reservation + sum over Available ones of
//       max(reserved, charged) <= allocatable
//   I4  over the whole history at most one pod was ever bound with a link to an allocateOnce reservation
//   I5  a bound pod stays where it is, and so does a reservation; a final phase is for good
//   and no bound pod says that it has no node, unless the dead may speak late
class Judge {
public:
    explicit Judge(bool reads_conditions) : reads_conditions_(reads_conditions) {}
    void look(const SmallServer& server);
    // The first thing that was wrong; empty: nothing was.
    const std::string& verdict() const { return verdict_; }

private:
    struct Held {
        std::string node;
        bool available = false;
        bool live = false;
        std::map<std::string, int64_t> reserved, charged;
    };
    using Use = std::map<std::string, std::map<std::string, int64_t>>;  // node -> resource -> amount

    std::map<std::string, Held> reservations_of(const SmallServer& server);
    void count_pods(const SmallServer& server, std::map<std::string, Held>& held, Use& used);
    void follow_place(const std::string& what, const std::string& uid, const std::string& node);
    void follow_draws(const Json& pod);
    void read_conditions(const Json& pod);
    void wrong(const std::string& what) {
        if (verdict_.empty()) verdict_ = what;
    }

    bool reads_conditions_;
    std::string verdict_;
    std::map<std::string, std::string> places_;             // uid -> node, for ever
    std::map<std::string, std::string> ended_;              // uid -> the final phase
    std::map<std::string, std::set<std::string>> drawers_;  // reservation uid -> pods ever bound with a link to it
    std::map<std::string, std::string> once_;               // uid -> name of allocateOnce ones, for ever
};

}  // namespace berth::crash
