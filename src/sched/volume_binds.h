#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "ledger/volumes.h"
#include "sched/plan.h"

namespace berth::sched {

// Pods whose node is chosen and whose claims are not bound yet: first the volumes' and claims' writes are carried out,
// then the claims must be seen bound, then the pod is bound. By the pod's uid.
class VolumeBinds {
public:
    struct Waiting {
        BindPod bind;
        ledger::VolumeSteps steps;
        std::map<std::string, uint64_t> revisions;  // of the claims, by full name, when their node was chosen
        size_t unanswered = 0;                      // writes under way
        base::Instant deadline;
        uint64_t serial = 0;
    };
    enum class State : uint8_t { Waits, Bound, Failed };

    // Remembers the pod and gives what has to be written first.
    std::vector<Plan> begin(BindPod bind, ledger::VolumeSteps steps, const ledger::Volumes& volumes,
                            base::Instant deadline);
    // One write of this try was carried out.
    void answered(std::string_view pod);
    // Whether the pod still waits for this try.
    bool awaits(std::string_view pod, uint64_t serial) const;
    std::optional<Waiting> take(std::string_view pod);

    // Something about volumes changed, or may have.
    void look() { look_ = true; }
    // The pods that are done waiting, one way or the other, with how; each is still to be taken.
    std::vector<std::pair<std::string, State>> settled(const ledger::Volumes& volumes, base::Instant now);
    std::optional<base::Instant> next_wake() const;

private:
    static State state_of(const Waiting& waiting, const ledger::Volumes& volumes);
    std::map<std::string, Waiting> waiting_;
    uint64_t tries_ = 0;
    bool look_ = false;
};

}  // namespace berth::sched
