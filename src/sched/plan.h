#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/reservation.h"
#include "model/storage.h"

namespace berth::sched {

// What shall be written, as values. Whoever carries a plan out reports back with Scheduler::outcome().

// Assigns a pod to a node; the annotations travel in the same write.
struct BindPod {
    std::string uid, ns, name;
    std::string node;
    std::vector<std::pair<std::string, std::string>> annotations;
    std::optional<size_t> extender = {};  // which one binds in our place
};

// No node fits a pod now: condition PodScheduled=False and an event, in kube-scheduler's words.
struct RefusePod {
    std::string uid, ns, name;
    std::string message;
    std::string reason = "Unschedulable";  // SchedulingGated, SchedulerError
    // Where room is being made for it, written along; empty: nowhere any more; absent: as it is.
    std::optional<std::string> nominated = {};
};

// A pod goes so that another fits: first it is told why (condition DisruptionTarget), then it is deleted, if it is
// still the same one.
struct EvictPod {
    enum class Step : uint8_t { Mark, Delete };
    std::string uid, ns, name;
    std::string node;
    std::string by;            // uid of the pod it goes for
    std::string by_scheduler;  // that pod's schedulerName
    Step step = Step::Mark;
};

// A Reservation that keeps the room which victims leave for this pod (model/preemption_hold.h), made before they go.
struct HoldRoom {
    std::string uid, ns, name;
    std::string node;
    std::shared_ptr<const model::Pod> pod;
};

// Such a Reservation has no use any more: its pod is gone, or went elsewhere.
struct DropRoom {
    std::string uid, name;
};

// The pod's nominatedNodeName means nothing any more: somebody more important makes room there.
struct ClearNomination {
    std::string uid, ns, name;
};

// A reservation has its place, or no node fits it now: its whole new status.
struct WriteReservation {
    std::string uid, name;
    uint64_t revision = 0;  // of the object that was decided about: when it has moved on, the write is refused
    model::ReservationStatus status;
    bool placed = false;
    std::string message;  // for people: where it is, or why not
};

// An allocateOnce reservation is kept for a pod, which is bound when that is stored. Without a pod: for nobody any
// more, or, where one had been bound, it ends.
struct ClaimReservation {
    std::string pod;      // uid
    uint64_t serial = 0;  // of the try
    std::string uid, name;
    uint64_t revision = 0;  // as in WriteReservation
    model::ReservationStatus status;
};

// The room that a reservation waited for is there: its whole new status.
struct OpenReservation {
    std::string uid, name;
    uint64_t revision = 0;  // as in WriteReservation
    model::ReservationStatus status;
};

// A volume is kept for a claim of the pod, if it is still as it was decided about.
struct KeepVolume {
    std::string pod;  // uid
    std::string volume, uid;
    uint64_t revision = 0;
    model::ClaimRef claim;
    bool ours = true;     // nobody had named the claim before
    uint64_t serial = 0;  // of the try
};

// A volume shall be made for a claim of the pod, for this node.
struct SelectNode {
    std::string pod;  // uid
    model::ClaimRef claim;
    uint64_t revision = 0;
    std::string node;
    uint64_t serial = 0;  // of the try
};

// A question to an extender; its answer comes back with Scheduler::answered().
struct AskExtender {
    enum class Verb : uint8_t { Filter, Prioritize, Preempt };
    std::string pod, ns, name;  // pod: uid
    uint64_t serial = 0;
    size_t extender = 0;
    Verb verb = Verb::Filter;
    std::vector<std::string> nodes;    // by name; Preempt: the one
    std::vector<std::string> victims;  // Preempt: uids
    int64_t violations = 0;            // Preempt: of disruption budgets
};

// It is not known what is stored of a pod or reservation now: read the object and put() what is there, or remove it.
struct ReadBack {
    enum class What : uint8_t { Pod, Reservation };
    What what = What::Pod;
    std::string uid, ns, name;
    std::string why = {};  // what the server said to the bind that led here
};

using Plan = std::variant<BindPod, RefusePod, EvictPod, HoldRoom, DropRoom, ClearNomination, WriteReservation,
                          ClaimReservation, OpenReservation, KeepVolume, SelectNode, AskExtender, ReadBack>;

// What came of a plan. Unknown: the request may or may not have taken effect; only a read resolves it, never a timeout.
enum class Outcome : uint8_t { Done, Refused, Unknown };

}  // namespace berth::sched
