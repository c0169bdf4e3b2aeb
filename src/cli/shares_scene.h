#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/world.h"
#include "share/scene.h"

namespace berth::cli {

// Gathers what `berth shares` computes from: the objects go into a World, and what a World has no place for stays here.
class SharesScene {
public:
    explicit SharesScene(base::Time now) : now_(now), world_(now) {}

    // False: the kind means nothing here. An Error harms that object alone where that is possible.
    Result<bool> put(const Json& object);
    // `limits`: limits.* are counted although no Consumer names them.
    share::Scene take(bool limits);
    // What of the objects is not taken as it is written, one sentence each.
    std::vector<std::string> warnings() const;

private:
    struct Budget {
        Json spec;
        bool has_status = false;
    };

    void add_nodes(share::Scene& scene);
    void add_pods(share::Scene& scene, bool limits);
    void add_holds(share::Scene& scene);
    void add_claims(share::Scene& scene);
    void add_budgets(share::Scene& scene);
    share::ScenePod scene_pod(const model::Pod& pod, bool limits) const;
    std::vector<uint32_t> may_stand(const model::Pod& pod, const share::Scene& scene);
    bool names_limits() const;
    bool ignored(const Error& error);

    base::Time now_;
    World world_;
    std::set<std::string> namespaces_;
    std::map<std::string, size_t> arrivals_;          // of pods, by full name: in which order they came
    std::set<std::string> dated_;                     // pods with a creationTimestamp
    std::set<std::string> lost_;                      // nodes that are not ready for too long
    std::map<std::string, model::Resources> limits_;  // of pods, by full name
    std::map<std::string, Budget> budgets_;           // by full name
    std::map<std::string, uint32_t> index_;           // of nodes, by name
    std::vector<model::Consumer> consumers_;
    std::vector<model::ResourceQuota> quotas_;
    std::vector<std::string> warnings_;
};

}  // namespace berth::cli
