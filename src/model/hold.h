#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/labels.h"
#include "model/quantity.h"
#include "model/taints.h"

// The nouns of layered pools (IEP-11), as the API's objects and the wire between layers carry them.
namespace berth::model {

// By the resource's name: anything may be a resource, and names come from others, so they are not interned.
using Amounts = std::map<std::string, Quantity>;

// What a pool says of a reservation, in the order in which an attempt may pass through it.
enum class HoldState : uint8_t { Pending, Accepted, Rejected, NoReply, Bound, Released, Lost };
// Why it is not accepted, the most hopeful last. None: nothing to say. Fenced: a later attempt is known. BestEffort: it
// is accepted, and nobody below holds it.
enum class HoldReason : uint8_t { None, Fenced, Unsatisfiable, Insufficient, Error, Contended, Retry, BestEffort };

std::string_view name_of(HoldState state);
std::string_view name_of(HoldReason reason);
// Words that mean none are Pending, and None.
HoldState hold_state(std::string_view name);
HoldReason hold_reason(std::string_view name);

struct HoldAnswer {
    HoldState state = HoldState::Pending;
    HoldReason reason = HoldReason::None;
    int32_t score = 0;                         // 0 to 10
    std::optional<base::Duration> lease = {};  // from now; absent: it does not end
    bool committed = false;                    // it waits for its machine
    bool operator==(const HoldAnswer&) const = default;
};

// What is asked of a pool. The lineage is who it is for, in the whole tree; the attempt fences older ones.
struct HoldAsk {
    std::string lineage;
    uint64_t attempt = 1;
    Amounts resources;
    std::string machine_class = {};
    Labels selector = {};
    std::vector<Toleration> tolerations = {};
    int32_t priority = 0;
    std::string group = {};
    std::optional<base::Duration> duration = {};  // of a hold that no machine shall replace
    std::vector<std::string> pools = {};          // only these, in the layer below
    bool operator==(const HoldAsk&) const = default;

    // Somebody wants the room itself: no machine will come.
    bool keeps() const { return lineage.starts_with(kKeeps); }
    static constexpr std::string_view kKeeps = "hold-";
};

// On the objects of every layer.
inline constexpr const char* kLineageLabel = "berth.dev/lineage";
inline constexpr const char* kAttemptLabel = "berth.dev/attempt";
inline constexpr const char* kResourcesAnnotation = "berth.dev/resources";

// A number from 1 up; what is none is 1.
uint64_t attempt_of(const Labels& labels);
// {"cpu":"2","memory":"4Gi"}
std::string text_of(const Amounts& amounts);

}  // namespace berth::model
