#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/pod.h"

namespace berth::model {
class Reader;
}

// Services that decide along with the scheduler, asked over HTTP by whoever carries plans out. Names and bodies are
// kube-scheduler's (k8s.io/kube-scheduler/extender/v1).
namespace berth::sched {

// Replies above this, or later than an extender's timeout, are refused.
inline constexpr size_t kMostExtenderReply = size_t{1} << 20;
inline constexpr base::Duration kLongestExtenderTimeout = std::chrono::seconds(5);

struct Extender {
    std::string url;                                                    // without a slash at its end
    std::string filter_verb, prioritize_verb, preempt_verb, bind_verb;  // empty: not asked
    int64_t weight = 1;
    base::Duration timeout = kLongestExtenderTimeout;
    bool node_cache_capable = false;  // it knows the nodes: names are enough
    bool ignorable = false;           // without its answer the pod is decided all the same
    bool https = false;
    struct Tls {
        bool insecure = false;
        std::string server_name, ca_pem, certificate_pem, key_pem;
        std::string ca_file, certificate_file, key_file;
    };
    Tls tls;
    std::vector<model::ResourceId> managed;  // it cares only for pods that ask for one of these; empty: for all

    bool cares_for(const model::PodSpec& spec) const;
};

struct ExtenderRefusal {
    std::string reason;
    bool unresolvable = false;
};

struct FilterReply {
    std::vector<std::string> nodes;
    std::map<std::string, ExtenderRefusal> refused;
};

// What a reply says, or why it cannot be used. Keys are read without regard to case, as Go does.
Result<FilterReply> read_filter_reply(std::string_view body);
// Points of 0 to 10 by node.
Result<std::map<std::string, int64_t>> read_prioritize_reply(std::string_view body);
// Uids of the victims by node; nodes that are missing are no candidates.
Result<std::map<std::string, std::vector<std::string>>> read_preempt_reply(std::string_view body);
Status read_bind_reply(std::string_view body);

// The entries of a configuration's `extenders`, and the resources that the scheduler shall not look at for them.
std::vector<Extender> read_extenders(const model::Reader& list, std::vector<model::ResourceId>& ignored);

}  // namespace berth::sched
