#pragma once

#include <map>
#include <string>
#include <vector>

#include "control/objects.h"
#include "run/world.h"

namespace berth::cli {

// The workloads of a dump. A manifest, or a dump without pods, says what is wanted only: the pods that their
// controllers would make are made here.
class WorkloadPods {
public:
    // False: it is none. What the ledger reads of it is the world's business.
    bool take(const Json& object);

    struct Made {
        std::string workload;  // "Deployment default/web"
        int64_t pods = 0;
    };
    struct Expansion {
        std::vector<Made> made;
        std::vector<std::string> not_counted;  // "CronJob default/report: its pods come at times of their own"
    };
    // Puts the pods that are wanted and not there into the world, and the claims of StatefulSets.
    Result<Expansion> expand(run::World& world) const;

    // The kinds that take() knows.
    static std::vector<std::string> kinds();
    // One pod of a workload's template, or the pod itself; none: there is nothing to make a pod of.
    static std::optional<Json> pod_of(const Json& object);

private:
    struct Workload {
        std::string kind, version;
        control::ObjectPtr object;
        std::string title() const { return kind + " " + object->meta.full_name(); }
    };
    // How many pods each controller has, by "kind namespace/name", and the pods that nobody controls.
    struct Tally {
        std::map<std::string, int64_t> by_controller;
        std::vector<model::Meta> alone;
    };
    Tally tally(const run::World& world) const;
    int64_t present(const Workload& workload, const Tally& tally) const;
    bool is_part_of_another(const Workload& workload) const;
    static Status make(const Workload& workload, int64_t count, run::World& world);

    std::vector<Workload> all_;
    std::map<std::string, size_t> known_;  // by title
};

}  // namespace berth::cli
