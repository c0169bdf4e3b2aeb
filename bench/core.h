#pragma once

#include <functional>
#include <memory>

#include "base/random.h"
#include "bench/workload.h"
#include "ledger/ledger.h"

namespace berth::bench {

using SharedSpec = std::shared_ptr<const model::PodSpec>;

// A workload in core mode: a cluster in this process, and the pods that ask for a place in it.
struct CoreWorkload {
    int64_t nodes = 5000;  // unless the flags say otherwise
    int64_t initial = 5000;
    int64_t pods = 10'000;  // in place at most while measured: beyond it, each decision first deletes the oldest
    std::function<model::Node(size_t number)> node = nullptr;
    std::function<SharedSpec(size_t number)> initial_spec = nullptr;  // absent: as spec
    std::function<SharedSpec(size_t number)> spec = nullptr;
    std::function<void(ledger::Ledger&)> prepare = nullptr;                 // when the nodes are there
    std::function<void(ledger::Ledger&, size_t decision)> churn = nullptr;  // before each decision
    // Set: reservations ask for a place instead of pods.
    std::function<std::shared_ptr<const model::Reservation>(size_t number)> reservation = nullptr;
    bool may_fail = false;   // some pods fit nowhere; each is then diagnosed
    bool must_draw = false;  // each pod must be placed with a reservation's help
    bool shares = false;     // pods start where their namespace deserves it
    bool preempts = false;   // a pod that fits nowhere takes the room of less important ones; they return when it goes
};

// Decides for at least a second, over every node, and holds what was decided.
Result<JsonObject> run_core(const CoreWorkload& workload, const BenchOptions& options);

// 4 cpu, 32Gi, 110 pods; a hostname and one of three zones.
model::Node plain_node(size_t number);
// 100m, 500Mi.
model::PodSpec plain_spec();

}  // namespace berth::bench
