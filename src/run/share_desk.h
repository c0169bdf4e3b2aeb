#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/json_view.h"
#include "base/string_map.h"
#include "share/answer.h"

namespace berth::run {

// What schedulers ask the arbitrator, on any thread: may this pod start, and may those go for it? Answers come from the
// numbers of the last cycle and from what was granted since: a pod that was let through is in flight, by its uid,
// until it is seen bound, gone, or is half a minute old; so whoever asks, and however often, nobody gets more than its
// share.
class ShareDesk {
public:
    struct Reply {
        int code = 200;
        std::string body;
    };

    // The extender's verbs, with the bodies of k8s.io/kube-scheduler/extender/v1. 503 while nobody leads here.
    Reply filter(std::string_view body, base::Instant now);
    Reply preempt(std::string_view body, base::Instant now);

    // --- the arbitrator's side
    void show(const share::Scene& scene, const share::Settings& settings, const share::Answer& answer,
              base::Instant now);
    std::set<std::string> in_flight(base::Instant now);
    // Somebody was asked about that no cycle has seen.
    bool asks_for_cycle();
    void close();

private:
    struct Grant {
        std::string ns;
        Resources size;
        base::Instant until;
    };
    struct Placed {
        std::string ns;
        Resources size;
    };
    struct Flight {
        Resources amounts;
        int64_t pods = 0;
    };

    // Empty: it may start.
    // Nodes whose room is kept for others.
    std::set<std::string, std::less<>> kept_from(const share::ScenePod& pod) const;
    std::string judge(const share::ScenePod& pod, base::Instant now, bool grants);
    Result<share::ScenePod> pod_in(JsonView question) const;
    share::Account& account_of(const std::string& ns);
    void add_demand(const share::ScenePod& pod);
    void end_grant(const std::string& uid);
    void expire(base::Instant now);
    bool keeps_reserved(JsonView victims, const share::ScenePod& pod) const;

    std::mutex mutex_;  // guards all below
    bool open_ = false;
    std::set<std::string> unseen_;  // uids of pods that somebody asked about and no cycle has seen
    bool limits_ = false;           // limits.* are counted
    share::Problem problem_;
    std::vector<share::Account> accounts_;  // by name, as the problem's consumers
    std::set<std::string, std::less<>> infinite_;
    base::StringMap<Placed> placed_, waiting_;    // by uid
    base::StringMap<Resources> kept_;             // nodes where room is kept for somebody: what is left for others
    std::set<std::string, std::less<>> keepers_;  // for whom, by uid
    std::map<std::string, Grant> grants_;         // by uid
    std::map<std::string, Flight> flights_;       // by namespace
};

}  // namespace berth::run
