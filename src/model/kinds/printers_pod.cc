#include <fmt/format.h>

#include <optional>
#include <set>

#include "model/kinds/path.h"
#include "model/kinds/printers.h"
#include "model/kinds/table.h"
#include "model/times.h"

namespace berth::model {
namespace {

bool condition_is_true(const Json& pod, std::string_view type) {
    for (const auto& c : list_at(pod, ".status.conditions")) {
        if (string_at(c, ".type") == type) return string_at(c, ".status") == "True";
    }
    return false;
}

// What kubectl's READY, STATUS and RESTARTS say, gathered in one walk over the container statuses.
struct Summary {
    int64_t ready = 0;
    int64_t total = 0;
    int64_t restarts = 0;
    std::optional<base::Time> last_restart;
    std::string reason;
};

bool is_sidecar(const Json& pod, std::string_view name) {
    for (const auto& c : list_at(pod, ".spec.initContainers")) {
        if (string_at(c, ".name") == name) return string_at(c, ".restartPolicy") == "Always";
    }
    return false;
}

void note_restart(const Json& status, int64_t& restarts, std::optional<base::Time>& last) {
    restarts += int_at(status, ".restartCount");
    const auto finished = parse_time(string_at(status, ".lastState.terminated.finishedAt"));
    if (finished.ok() && (!last || *last < *finished)) last = *finished;
}

// "Error", "Signal:9", "ExitCode:1" of a terminated state.
std::string end_of(const Json& terminated) {
    const auto reason = string_at(terminated, ".reason");
    if (!reason.empty()) return std::string(reason);
    const int64_t signal = int_at(terminated, ".signal");
    if (signal != 0) return fmt::format("Signal:{}", signal);
    return fmt::format("ExitCode:{}", int_at(terminated, ".exitCode"));
}

// Walks the init containers up to the first that is not done; true: the pod still initialises and s.reason says how.
// Restarts of sidecars are also counted alone, for when initialisation is over.
bool walk_init(const Json& pod, Summary& s, Summary& sidecars) {
    int64_t i = 0;
    for (const auto& status : list_at(pod, ".status.initContainerStatuses")) {
        note_restart(status, s.restarts, s.last_restart);
        const bool sidecar = is_sidecar(pod, string_at(status, ".name"));
        if (sidecar) note_restart(status, sidecars.restarts, sidecars.last_restart);
        const Json* terminated = at_path(status, ".state.terminated");
        const bool done = terminated != nullptr && int_at(*terminated, ".exitCode") == 0;
        const bool serving = sidecar && bool_at(status, ".started");
        if (!done && serving && bool_at(status, ".ready")) ++s.ready;
        if (done || serving) {
            ++i;
            continue;
        }
        const auto waiting = string_at(status, ".state.waiting.reason");
        if (terminated != nullptr) {
            s.reason = "Init:" + end_of(*terminated);
        } else if (!waiting.empty() && waiting != "PodInitializing") {
            s.reason = "Init:" + std::string(waiting);
        } else {
            s.reason = fmt::format("Init:{}/{}", i, list_at(pod, ".spec.initContainers").size());
        }
        return true;
    }
    return false;
}

void walk_containers(const Json& pod, Summary& s) {
    bool running = false;
    std::string failure;
    const auto& statuses = list_at(pod, ".status.containerStatuses");
    for (size_t i = statuses.size(); i-- > 0;) {
        const Json& status = statuses[i];
        note_restart(status, s.restarts, s.last_restart);
        const auto waiting = string_at(status, ".state.waiting.reason");
        if (!waiting.empty()) {
            s.reason = waiting;
        } else if (const Json* terminated = at_path(status, ".state.terminated")) {
            s.reason = end_of(*terminated);
            if (int_at(*terminated, ".exitCode") != 0) failure = s.reason;
        } else if (bool_at(status, ".ready") && at_path(status, ".state.running") != nullptr) {
            running = true;
            ++s.ready;
        }
    }
    if (s.reason != "Completed") return;
    if (running && condition_is_true(pod, "Ready")) {
        s.reason = "Running";
    } else if (!failure.empty()) {
        s.reason = failure;
    } else if (running) {
        s.reason = "NotReady";
    }
}

Summary summarise(const Json& pod) {
    Summary s;
    const auto phase = string_at(pod, ".status.phase");
    const auto status_reason = string_at(pod, ".status.reason");
    s.reason = status_reason.empty() ? phase : status_reason;
    for (const auto& c : list_at(pod, ".status.conditions")) {
        if (string_at(c, ".type") == "PodScheduled" && string_at(c, ".reason") == "SchedulingGated")
            s.reason = "SchedulingGated";
    }
    s.total = static_cast<int64_t>(list_at(pod, ".spec.containers").size());
    for (const auto& c : list_at(pod, ".spec.initContainers")) s.total += string_at(c, ".restartPolicy") == "Always";
    Summary sidecars;
    if (!walk_init(pod, s, sidecars) || condition_is_true(pod, "Initialized")) {
        s.restarts = sidecars.restarts;
        s.last_restart = sidecars.last_restart;
        walk_containers(pod, s);
    }
    if (at_path(pod, ".metadata.deletionTimestamp") != nullptr) {
        if (status_reason == "NodeLost") {
            s.reason = "Unknown";
        } else if (phase != "Failed" && phase != "Succeeded") {
            s.reason = "Terminating";
        }
    }
    return s;
}

Json pod_ready(const Cell& c) {
    const Summary s = summarise(c.object);
    return Json(fmt::format("{}/{}", s.ready, s.total));
}

Json pod_status(const Cell& c) {
    return Json(summarise(c.object).reason);
}

Json pod_restarts(const Cell& c) {
    const Summary s = summarise(c.object);
    if (s.restarts == 0 || !s.last_restart) return Json(fmt::format("{}", s.restarts));
    return Json(fmt::format("{} ({} ago)", s.restarts, human_duration(c.now - *s.last_restart)));
}

Json pod_ip(const Cell& c) {
    auto ip = string_at(c.object, ".status.podIPs[0].ip");
    if (ip.empty()) ip = string_at(c.object, ".status.podIP");
    return Json(ip.empty() ? "<none>" : ip);
}

Json pod_gates(const Cell& c) {
    const auto& gates = list_at(c.object, ".spec.readinessGates");
    if (gates.empty()) return "<none>";
    int64_t open = 0;
    for (const auto& gate : gates) open += condition_is_true(c.object, string_at(gate, ".conditionType"));
    return Json(fmt::format("{}/{}", open, gates.size()));
}

Json node_status(const Cell& c) {
    std::string status = "Unknown";
    for (const auto& condition : list_at(c.object, ".status.conditions")) {
        if (string_at(condition, ".type") == "Ready")
            status = string_at(condition, ".status") == "True" ? "Ready" : "NotReady";
    }
    return Json(status + (bool_at(c.object, ".spec.unschedulable") ? ",SchedulingDisabled" : ""));
}

Json node_roles(const Cell& c) {
    constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
    std::set<std::string> roles;
    for (const auto& label : members_at(c.object, ".metadata.labels")) {
        const std::string_view key(label.key());
        if (key.starts_with(kPrefix) && key.size() > kPrefix.size()) roles.emplace(key.substr(kPrefix.size()));
        const auto value = string_at(label.value(), "");
        if (key == "kubernetes.io/role" && !value.empty()) roles.emplace(value);
    }
    const std::string all = joined({roles.begin(), roles.end()});
    return Json(all.empty() ? "<none>" : all);
}

Json node_address(const Cell& c) {
    for (const auto& address : list_at(c.object, ".status.addresses")) {
        if (string_at(address, ".type") == c.argument) return Json(string_at(address, ".address"));
    }
    return "<none>";
}

constexpr Printer kPrinters[] = {
    {"pod-ready", pod_ready},   {"pod-status", pod_status},     {"pod-restarts", pod_restarts},
    {"pod-ip", pod_ip},         {"pod-gates", pod_gates},       {"node-status", node_status},
    {"node-roles", node_roles}, {"node-address", node_address},
};

}  // namespace

std::span<const Printer> pod_printers() {
    return kPrinters;
}

}  // namespace berth::model
