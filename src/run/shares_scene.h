#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/world.h"
#include "share/scene.h"

namespace berth::run {

// limits.* of a pod: what its containers may use at most, by the rule that adds up their requests.
model::Resources limits_of(Json pod);

// Gathers what shares are computed from: the objects go into a World, and what a World has no place for stays here.
// `berth shares` fills it once, the arbitrator keeps it up to date.
class SharesScene {
public:
    explicit SharesScene(base::Time now) : now_(now), world_(now) {}

    // New or changed. False: the kind means nothing here. An Error harms that object alone where that is possible.
    Result<bool> put(const Json& object);
    void remove(std::string_view kind, std::string_view ns, std::string_view name);
    void advance_to(base::Time now);
    // When the scene changes though nothing comes: a node will have been away for too long.
    std::optional<base::Time> next_change() const;
    // `limits`: limits.* are counted although no Consumer names them.
    share::Scene take(bool limits);
    // What of the objects is not taken as it is written, one sentence each.
    std::vector<std::string> warnings() const;
    // Of Consumers that cannot be read and so count as if they said nothing: why, by name.
    const std::map<std::string, std::string>& broken_consumers() const { return broken_consumers_; }

private:
    struct Budget {
        Json spec;
        bool has_status = false;
    };

    Result<bool> put_consumer(const Json& object);
    Result<bool> put_quota(const Json& object, const std::string& full_name);
    void note(const Json& object, std::string_view kind, const std::string& full_name);
    void add_nodes(share::Scene& scene);
    void add_pods(share::Scene& scene, bool limits);
    void add_holds(share::Scene& scene);
    void add_claims(share::Scene& scene);
    void add_budgets(share::Scene& scene);
    share::ScenePod scene_pod(const model::Pod& pod, bool limits) const;
    std::vector<uint32_t> may_stand(const model::Pod& pod, const share::Scene& scene);
    bool names_limits() const;

    base::Time now_;
    World world_;
    std::set<std::string> namespaces_;
    std::map<std::string, size_t> arrivals_;  // of pods, by full name: in which order they came
    size_t arrived_ = 0;
    std::set<std::string> dated_;                     // pods with a creationTimestamp
    std::map<std::string, base::Time> not_ready_;     // nodes, since when
    std::map<std::string, model::Resources> limits_;  // of pods, by full name
    std::map<std::string, Budget> budgets_;           // by full name
    std::map<std::string, uint32_t> index_;           // of nodes, by name
    std::map<std::string, model::Consumer> consumers_;
    std::map<std::string, std::string> broken_consumers_;
    std::map<std::string, model::ResourceQuota> quotas_;  // by full name
    std::map<std::string, std::string> warnings_;         // by kind/namespace/name
};

}  // namespace berth::run
