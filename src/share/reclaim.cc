#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "share/answer.h"

// Taking back. Nobody goes for overuse alone: a pod that was admitted must lack room, some node must fit it afterwards,
// and everything that goes is needed there. Freed room is kept for the claim.
namespace berth::share {
namespace {

constexpr int32_t kCritical = 2'000'000'000;

class Plan {
public:
    Plan(const Scene& scene, const Settings& settings, const Resources& capacity, std::vector<Account>& accounts)
        : scene_(scene), settings_(settings), accounts_(accounts) {
        capacity.for_each([&](ResourceId id, int64_t amount) { pool_.set(id, amount); });
        for (const auto& account : accounts) {
            if (account.parent.empty()) pool_.subtract(account.reserved);
            Held& held = held_[account.name];
            held.used = account.used;
            held.used.subtract(account.releasing);
        }
        for (const auto& node : scene.nodes) {
            free_.push_back(node.lost ? Resources{} : node.allocatable);
            free_.back().erase(model::kPods);
        }
        for (uint32_t i = 0; i < scene.pods.size(); ++i) {
            const ScenePod& pod = scene.pods[i];
            if (!pod.placed || pod.node == kNowhere) continue;
            if (!pod.terminating) free_[pod.node].subtract(pod.size);
            on_node_[pod.node].push_back(i);
        }
        for (const auto& hold : scene.holds) {
            if (hold.node != kNowhere) free_[hold.node].subtract(hold.amount);
        }
        for (const auto& budget : scene.budgets) allowed_.push_back(budget.allowed);
        gone_.resize(scene.pods.size());
    }

    // The room that was made for it is its own, whether all have left yet or not.
    void keep(uint32_t claim) { place(claim, scene_.pods[claim].earmark); }

    void serve(uint32_t claim) {
        const ScenePod& pod = scene_.pods[claim];
        for (const uint32_t node : pod.may_stand) {
            if (!fits(pod.size, free_[node])) continue;
            rooms.push_back({claim, node});
            return place(claim, node);
        }
        if (pod.served) return;
        std::optional<Option> best;
        for (const uint32_t node : pod.may_stand) {
            auto option = make_room(claim, node);
            if (option && (!best || better(*option, *best))) best = std::move(option);
        }
        if (!best) return;
        for (const uint32_t victim : best->victims) {
            evict(victim, held_, allowed_);
            free_[best->node].add(scene_.pods[victim].size);
            gone_[victim] = 1;
            victims.push_back({victim, claim});
        }
        place(claim, best->node);
    }

    void tell_blocked() {
        for (const auto& [name, budget] : blocked_by_budget_) {
            account_named(accounts_, name)
                ->conditions.push_back(
                    {"ReclaimBlockedByPDB", fmt::format("the budget {} lets no more of its pods go", budget)});
        }
        for (const auto& name : blocked_by_reserved_) {
            account_named(accounts_, name)
                ->conditions.push_back(
                    {"ReclaimBlockedByReserved", "more of its pods cannot go without breaking its guarantee"});
        }
    }

    std::vector<Victim> victims;
    std::vector<Room> rooms;

private:
    struct Held {
        Resources used;
    };
    using Books = std::map<std::string_view, Held>;
    struct Option {
        uint32_t node = 0;
        std::vector<uint32_t> victims;
    };

    void place(uint32_t claim, uint32_t node) {
        const ScenePod& pod = scene_.pods[claim];
        free_[node].subtract(pod.size);
        held_[pod.ns].used.add(pod.size);
    }

    void evict(uint32_t victim, Books& books, std::vector<int64_t>& allowed) {
        books[scene_.pods[victim].ns].used.subtract(scene_.pods[victim].size);
        for (const uint32_t budget : scene_.pods[victim].budgets) --allowed[budget];
    }

    // The largest share of the pool in `used` above `from`, over the weight.
    double weighted(const Account& account, const Resources& used, const Resources& from,
                    const Resources& also = {}) const {
        double most = 0;
        used.for_each([&](ResourceId id, int64_t amount) {
            const double above = static_cast<double>(amount - std::max(from.get(id), also.get(id)));
            const double pool = std::max(1.0, static_cast<double>(pool_.get(id)));
            if (!model::is_storage(model::resource_name(id))) most = std::max(most, above / pool);
        });
        return account.weight > 0 ? most / static_cast<double>(account.weight) : most * 1e9;
    }

    size_t common_depth(const Account& a, const Account& b) const {
        const auto path = [&](const Account& of) {
            std::vector<std::string_view> names;
            const Account* at = &of;
            while (at != nullptr && !at->parent.empty() && names.size() <= accounts_.size()) {
                names.push_back(at->parent);
                at = account_named(std::as_const(accounts_), at->parent);
            }
            std::reverse(names.begin(), names.end());
            return names;
        };
        const auto first = path(a), second = path(b);
        size_t depth = 0;
        while (depth < first.size() && depth < second.size() && first[depth] == second[depth]) ++depth;
        return depth;
    }

    bool may_go(const ScenePod& pod, const Account& account) const {
        if (account.infinite || !account.reclaimable || pod.kept || pod.terminating || pod.priority >= kCritical)
            return false;
        return !pod.dated || settings_.now - pod.created >= settings_.min_run;
    }

    // Whether it would have its guarantee, and all it deserves, without this pod.
    bool may_lose(const Account& account, const Held& held, const ScenePod& pod, bool within_guarantee) {
        bool overused = within_guarantee, legal = true, keeps_reserved = true;
        pod.size.for_each([&](ResourceId id, int64_t amount) {
            if (amount <= 0) return;
            const int64_t now = held.used.get(id), deserved = account.share.deserved.get(id);
            if (now > deserved) overused = true;
            if (now > deserved && now - amount < deserved && !within_guarantee) legal = false;
            if (now - amount < account.reserved.get(id)) keeps_reserved = false;
        });
        if (overused && legal && !keeps_reserved) blocked_by_reserved_.insert(account.name);
        return overused && legal && keeps_reserved;
    }

    // Victims on one node, in order, until the claim fits; then those are dropped that it would fit without.
    std::optional<Option> make_room(uint32_t claim, uint32_t node) {
        const ScenePod& pod = scene_.pods[claim];
        const Account& claimant = *account_named(std::as_const(accounts_), pod.ns);
        Resources after = held_[pod.ns].used;
        after.add(pod.size);
        bool within = true;
        pod.size.for_each([&](ResourceId id, int64_t amount) {
            if (amount > 0 && after.get(id) > claimant.reserved.get(id)) within = false;
        });
        within = within || claimant.infinite;
        Resources room = free_[node];
        Books books = held_;
        auto allowed = allowed_;
        Option option{node, {}};
        std::vector<uint8_t> taken(scene_.pods.size());
        while (!fits(pod.size, room)) {
            const uint32_t victim = next_victim(claim, node, room, books, allowed, taken, within ? nullptr : &after);
            if (victim == kNowhere) return std::nullopt;
            taken[victim] = 1;
            evict(victim, books, allowed);
            room.add(scene_.pods[victim].size);
            option.victims.push_back(victim);
        }
        for (size_t i = option.victims.size(); i-- > 0;) {
            Resources without = room;
            without.subtract(scene_.pods[option.victims[i]].size);
            if (!fits(pod.size, without)) continue;
            room = without;
            option.victims.erase(option.victims.begin() + static_cast<ptrdiff_t>(i));
        }
        return option;
    }

    // `after`: what the claimant would use, which must stay below what the victim's consumer has; null: its guarantee
    // covers it.
    uint32_t next_victim(uint32_t claim, uint32_t node, const Resources& room, Books& books,
                         const std::vector<int64_t>& allowed, const std::vector<uint8_t>& taken,
                         const Resources* after) {
        const ScenePod& pod = scene_.pods[claim];
        const Account& claimant = *account_named(std::as_const(accounts_), pod.ns);
        uint32_t best = kNowhere;
        std::tuple<size_t, double> rank{};
        for (const uint32_t i : on_node_[node]) {
            const ScenePod& other = scene_.pods[i];
            const Account& account = *account_named(std::as_const(accounts_), other.ns);
            if (taken[i] != 0 || gone_[i] != 0 || other.ns == pod.ns || !may_go(other, account)) continue;
            if (!helps(other, pod, room)) continue;
            const Held& held = books[other.ns];
            if (after != nullptr &&
                weighted(claimant, *after, claimant.reserved) >= weighted(account, held.used, account.reserved))
                continue;
            if (!may_lose(account, held, other, after == nullptr)) continue;
            if (const uint32_t budget = spent(other, allowed); budget != kNowhere) {
                blocked_by_budget_[account.name] = scene_.budgets[budget].name;
                continue;
            }
            const std::tuple mine{common_depth(claimant, account),
                                  weighted(account, held.used, account.share.deserved, account.reserved)};
            const bool first =
                best == kNowhere || mine > rank ||
                (mine == rank && (scene_.pods[best].ns != other.ns ? other.ns < scene_.pods[best].ns
                                                                   : goes_before(other, scene_.pods[best], settings_)));
            if (!first) continue;
            best = i;
            rank = mine;
        }
        return best;
    }

    // It has something of what the claim lacks here.
    static bool helps(const ScenePod& victim, const ScenePod& claim, const Resources& room) {
        bool any = false;
        claim.size.for_each(
            [&](ResourceId id, int64_t amount) { any = any || (amount > room.get(id) && victim.size.get(id) > 0); });
        return any;
    }

    static uint32_t spent(const ScenePod& pod, const std::vector<int64_t>& allowed) {
        for (const uint32_t budget : pod.budgets) {
            if (allowed[budget] <= 0) return budget;
        }
        return kNowhere;
    }

    // Fewest, then the lowest priority, then the node's name.
    bool better(const Option& a, const Option& b) const {
        if (a.victims.size() != b.victims.size()) return a.victims.size() < b.victims.size();
        const auto priorities = [&](const Option& option) {
            std::vector<int32_t> out;
            for (const uint32_t victim : option.victims) out.push_back(scene_.pods[victim].priority);
            std::sort(out.rbegin(), out.rend());
            return out;
        };
        const auto first = priorities(a), second = priorities(b);
        if (first != second) return first < second;
        return scene_.nodes[a.node].name < scene_.nodes[b.node].name;
    }

    const Scene& scene_;
    const Settings& settings_;
    std::vector<Account>& accounts_;
    Resources pool_;
    Books held_;
    std::vector<Resources> free_;
    std::map<uint32_t, std::vector<uint32_t>> on_node_;
    std::vector<int64_t> allowed_;
    std::vector<uint8_t> gone_;
    std::map<std::string, std::string> blocked_by_budget_;
    std::set<std::string> blocked_by_reserved_;
};

// What the admitted lack in the whole cluster is what those who have too much give back, the most overused first.
void tell_amounts(const Scene& scene, const Resources& capacity, const std::vector<Admission>& admissions,
                  std::vector<Account>& accounts) {
    Resources need;
    for (const auto& admission : admissions) {
        if (admission.admitted && !scene.pods[admission.pod].may_stand.empty())
            need.add(scene.pods[admission.pod].size);
    }
    Resources room = capacity;
    for (const auto& account : accounts) {
        if (!account.below_used.empty()) continue;
        room.subtract(account.used);
        room.add(account.releasing);
    }
    need.for_each([&](ResourceId id, int64_t amount) {
        if (model::is_storage(model::resource_name(id)) || !capacity.has(id)) return;
        int64_t lacking = amount - std::max<int64_t>(0, room.get(id));
        std::vector<Account*> overused;
        const auto excess = [&](const Account& account) {
            return account.used.get(id) - account.share.deserved.get(id);
        };
        for (auto& account : accounts) {
            if (!account.infinite && account.reclaimable && account.below_used.empty() && excess(account) > 0)
                overused.push_back(&account);
        }
        std::stable_sort(overused.begin(), overused.end(),
                         [&](const Account* a, const Account* b) { return excess(*a) > excess(*b); });
        for (Account* account : overused) {
            const int64_t back = std::min(lacking, excess(*account));
            if (back > 0) account->reclaim.set(id, back);
            lacking -= std::max<int64_t>(0, back);
        }
    });
}

}  // namespace

bool fits(const Resources& size, const Resources& room) {
    bool all = true;
    size.for_each([&](ResourceId id, int64_t amount) {
        if (amount > 0 && !model::is_limit(model::resource_name(id))) all = all && amount <= room.get(id);
    });
    return all;
}

std::map<uint32_t, Resources> rooms_for_others(const Scene& scene) {
    std::map<uint32_t, Resources> out;
    for (const auto& pod : scene.pods) {
        if (pod.placed || pod.earmark == kNowhere) continue;
        const auto [room, fresh] = out.try_emplace(pod.earmark, scene.nodes[pod.earmark].allocatable);
        room->second.subtract(pod.size);
    }
    if (out.empty()) return out;
    const auto take = [&](uint32_t node, const Resources& amount) {
        if (const auto room = out.find(node); room != out.end()) room->second.subtract(amount);
    };
    for (const auto& pod : scene.pods) {
        if (pod.placed && !pod.terminating) take(pod.node, pod.size);
    }
    for (const auto& hold : scene.holds) take(hold.node, hold.amount);
    return out;
}

Reclaimed reclaim(const Scene& scene, const Settings& settings, const Resources& capacity,
                  const std::vector<Admission>& admissions, std::vector<Account>& accounts) {
    tell_amounts(scene, capacity, admissions, accounts);
    Plan plan(scene, settings, capacity, accounts);
    for (const auto& admission : admissions) {
        if (scene.pods[admission.pod].earmark != kNowhere) plan.keep(admission.pod);
    }
    for (const auto& admission : admissions) {
        const ScenePod& pod = scene.pods[admission.pod];
        if (admission.admitted && !pod.may_stand.empty() && pod.earmark == kNowhere) plan.serve(admission.pod);
    }
    plan.tell_blocked();
    return {std::move(plan.victims), std::move(plan.rooms)};
}

}  // namespace berth::share
