#pragma once

#include <optional>
#include <vector>

#include "node/cores.h"
#include "node/slo.h"
#include "node/usage.h"

namespace berth::node {

inline constexpr int64_t kPeriod = 100'000;  // microseconds
inline constexpr int64_t kLeastQuota = 2'000;
inline constexpr int64_t kNoQuota = -1;

// What best-effort pods may use, in thousandths of a core:
//   capacity x percent - used by others - max(used by no pod, reserved by the annotation, by the kubelet)
// and never below capacity x least percent. E.g. capacity 20, 70 %, node 12, LS 8, BE 2: 14 - 8 - max(2, 0) = 4; with 6
// reserved 0.
int64_t allowed_milli(int64_t capacity, int64_t reserved, const Slo& slo, const std::vector<NodePod>& pods,
                      const Usage& usage);

// The next quota on the way to `target`: growth by at most a tenth of the machine, shrinking at once, changes below a
// hundredth not at all unless it is the least. E.g. 80 cores, target 20: from 10 to 18, from 24 to 20, 19.8 stays.
int64_t next_quota(int64_t machine_milli, int64_t target_milli, std::optional<int64_t> now);

// The CPUs that best-effort pods get: whole cores of `allowed`, at least 2, at most a tenth of the machine more than
// `now`; in proportion from those that LSR pods hold, the rest from what is shared; whole cores in turn over the
// sockets, then single threads, those first whose siblings are taken. E.g. 8 CPUs, pairs (0,1)(2,3)|(4,5)(6,7), LSR
// {0,6}, LSE {7}, 3 reserved, 3 wanted: one of {0,6}, two of {1,2,4,5}: {0,4,5}. Empty: no core is left for them.
model::CpuIds be_cpus(const Machine& machine, const Cores& cores, int64_t allowed,
                      const std::optional<model::CpuIds>& now);

}  // namespace berth::node
