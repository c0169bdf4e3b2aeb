#include "cli/leaving.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "model/disruption.h"
#include "model/node.h"
#include "model/reservation_rules.h"

namespace berth::cli {
namespace {

bool belongs_to_node(const model::Pod& pod) {
    const auto* controller = pod.meta.controller();
    const bool made_there = controller && (controller->kind == "DaemonSet" || controller->kind == "Node");
    return made_there || pod.meta.annotations.find("kubernetes.io/config.mirror") != nullptr;
}

// Where an evicted pod stands among the disruption budgets.
class Budgets {
public:
    explicit Budgets(const ledger::View& ledger) {
        for (const auto& budget : ledger.budgets().all()) all_.push_back({budget, budget->disruptions_allowed});
    }
    // Takes one disruption of its budget; else why not.
    std::optional<std::string> refuse(const model::Pod& pod) {
        std::vector<Entry*> covering;
        for (auto& entry : all_) {
            const bool granted = entry.budget->already_disrupted(pod.meta.name);
            if (entry.budget->covers(pod.meta.ns, pod.meta.labels) && !granted) covering.push_back(&entry);
        }
        if (covering.empty()) return std::nullopt;
        if (covering.size() > 1) return "more than one PodDisruptionBudget covers it, which evictions do not support";
        if (covering.front()->allowed <= 0) {
            return fmt::format("PodDisruptionBudget {} allows no disruption",
                               covering.front()->budget->meta.full_name());
        }
        --covering.front()->allowed;
        taken_[pod.meta.full_name()] = {covering.front()};
        return std::nullopt;
    }
    // The pod had to go for another one, whatever its budgets allow.
    void lost(const model::Pod& pod) {
        auto& taken = taken_[pod.meta.full_name()];
        for (auto& entry : all_) {
            if (!entry.budget->covers(pod.meta.ns, pod.meta.labels)) continue;
            --entry.allowed;
            taken.push_back(&entry);
        }
    }
    // The pod that was evicted runs again.
    void recovered(const std::string& pod) {
        const auto found = taken_.find(pod);
        if (found == taken_.end()) return;
        for (auto* entry : found->second) ++entry->allowed;
        taken_.erase(found);
    }

private:
    struct Entry {
        ledger::Budgets::Ptr budget;
        int64_t allowed;
    };
    std::vector<Entry> all_;
    std::map<std::string, std::vector<Entry*>> taken_;  // by pod
};

std::string key_of(const run::Placement& answer) {
    return fmt::format("{} {}/{}", answer.is_reservation, answer.ns, answer.name);
}

// A place is news; a refusal, where one was told already, is none.
void merge(std::vector<run::Placement>& answers, std::vector<run::Placement> more) {
    std::map<std::string, size_t> known;
    for (size_t i = 0; i < answers.size(); ++i) known.emplace(key_of(answers[i]), i);
    std::set<size_t> replaced;
    std::vector<run::Placement> news;
    for (auto& answer : more) {
        const auto before = known.find(key_of(answer));
        const bool moved_since = before != known.end() && answers[before->second].from != answer.from;
        if (before != known.end() && answer.node.empty() && !moved_since) continue;
        if (before != known.end()) replaced.insert(before->second);
        news.push_back(std::move(answer));
    }
    std::vector<run::Placement> out;
    for (size_t i = 0; i < answers.size(); ++i) {
        if (!replaced.contains(i)) out.push_back(std::move(answers[i]));
    }
    std::move(news.begin(), news.end(), std::back_inserter(out));
    answers = std::move(out);
}

void cordon(run::World& world, const std::string& name) {
    model::Node node = world.ledger().node(world.ledger().row_of(name));
    node.unschedulable = true;
    world.cluster().put(std::move(node));
}

// One round: who may go, goes. False: nobody did. Of those that nobody makes again the copy is kept.
bool evict_round(run::World& world, const std::set<std::string>& nodes, Budgets& budgets, Drain& out,
                 std::vector<model::Pod>& bare) {
    out.blocked.clear();
    std::vector<model::Pod> there;
    world.cluster().each_pod([&](const model::Pod& pod) {
        const bool runs = !pod.terminal() && !pod.meta.deleted;
        if (runs && nodes.contains(pod.node) && !belongs_to_node(pod)) there.push_back(pod);
    });
    bool went = false;
    for (const auto& pod : there) {
        if (auto why = budgets.refuse(pod)) {
            out.blocked.push_back({pod.meta.full_name(), std::move(*why)});
            continue;
        }
        out.moved.push_back(pod.meta.full_name());
        went = true;
        if (pod.meta.controller()) {
            world.displace(pod);
            continue;
        }
        out.bare.push_back(pod.meta.full_name());
        world.remove("Pod", pod.meta.ns, pod.meta.name);
        bare.push_back(pod);
    }
    return went;
}

// Lets it come to rest. Those who had to go for others come again when somebody makes them again.
void settle(run::World& world, Budgets& budgets, std::vector<run::Placement>& answers) {
    for (bool again = true; again;) {
        again = false;
        std::map<std::string, model::Pod> there;
        world.cluster().each_pod([&](const model::Pod& pod) {
            if (!pod.node.empty()) there.emplace(pod.meta.full_name(), pod);
        });
        auto more = world.settle();
        for (const auto& answer : more) {
            if (!answer.from.empty() && !answer.node.empty()) budgets.recovered(answer.ns + "/" + answer.name);
            for (const auto& name : answer.victims) {
                const auto victim = there.find(name);
                if (victim == there.end() || !victim->second.meta.controller()) continue;
                budgets.lost(victim->second);
                world.bring_back(victim->second);
                again = true;
            }
        }
        merge(answers, std::move(more));
    }
}

}  // namespace

Leaving uproot_homeless(run::World& world) {
    Leaving out;
    std::vector<model::Pod> homeless;
    world.cluster().each_pod([&](const model::Pod& pod) {
        if (pod.node.empty() || pod.terminal() || world.ledger().row_of(pod.node) != ledger::kNoRow) return;
        homeless.push_back(pod);
    });
    for (const auto& pod : homeless) {
        const std::string name = pod.meta.full_name();
        out.nodes.insert(pod.node);
        if (belongs_to_node(pod) || pod.meta.deleted) {
            out.gone.push_back(name);
            world.remove("Pod", pod.meta.ns, pod.meta.name);
            continue;
        }
        out.moved.push_back(name);
        if (!pod.meta.controller()) out.bare.push_back(name);
        world.displace(pod);
    }
    return out;
}

Result<std::vector<std::string>> nodes_of(const run::World& world, const std::string& selector) {
    const Selector wanted = TRY(Selector::parse(selector));
    const auto& ledger = world.ledger();
    std::vector<std::string> out;
    for (ledger::Row row = 0; row < ledger.rows(); ++row) {
        if (ledger.alive(row) && wanted.matches(ledger.node(row).meta.labels)) out.emplace_back(ledger.name(row));
    }
    if (out.empty()) return base::bad_request(fmt::format("no node has the labels \"{}\"", selector));
    std::sort(out.begin(), out.end());
    return out;
}

Drain drain(run::World& world, const std::vector<std::string>& nodes, std::vector<run::Placement>& answers) {
    Drain out;
    out.nodes = nodes;
    const std::set<std::string> drained(nodes.begin(), nodes.end());
    world.cluster().each_pod([&](const model::Pod& pod) {
        const bool runs = !pod.terminal() && !pod.meta.deleted;
        if (runs && drained.contains(pod.node) && belongs_to_node(pod)) out.staying.push_back(pod.meta.full_name());
    });
    for (const auto& name : nodes) cordon(world, name);
    Budgets budgets(world.ledger());
    settle(world, budgets, answers);
    std::vector<model::Pod> bare;
    while (evict_round(world, drained, budgets, out, bare)) settle(world, budgets, answers);
    // They take nobody's place and no budget heals by them: where each would go is asked when all others have theirs.
    for (auto& pod : bare) {
        auto spec = std::make_shared<model::PodSpec>(*pod.spec);
        spec->never_preempts = true;
        pod.spec = std::move(spec);
        world.bring_back(pod);
    }
    settle(world, budgets, answers);
    world.cluster().each_reservation([&](const model::Reservation& object) {
        if (model::holds_room(object) && drained.contains(object.node)) out.reservations.push_back(object.meta.name);
    });
    return out;
}

}  // namespace berth::cli
